// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/http/completion_body.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace serve {

/// Where the server listens, and how much of it one client can have. Memory per
/// connection is at most about `max_header_bytes + max_body_bytes +
/// max_pipelined_bytes + max_unsent_bytes` and what one answer takes.
struct server_options {
  /// A numeric IPv4 or IPv6 address of this machine.
  std::string address = "127.0.0.1";
  /// Zero lets the system choose.
  std::uint16_t port = 0;

  /// Clients beyond these get status 503 at once.
  std::size_t max_connections = 1'024;
  /// Request line and header fields together; more is status 431.
  std::size_t max_header_bytes = std::size_t{16} << 10;
  /// More is status 413.
  std::size_t max_body_bytes = std::size_t{256} << 10;
  /// Of further requests that come while one is being answered. They are served
  /// in their order; who sends more meanwhile is hung up on.
  std::size_t max_pipelined_bytes = std::size_t{64} << 10;
  /// Bytes of a stream that the client's socket does not take, here and in the
  /// kernel; beyond them its completion is aborted and the connection closed.
  std::size_t max_unsent_bytes = std::size_t{256} << 10;
  /// Size of a socket's send buffer in bytes; zero leaves it to the system.
  int socket_send_bytes = 0;

  /// From a request's first byte (of a connection: from its start) to its last;
  /// then status 408.
  std::chrono::milliseconds request_timeout{10'000};
  /// A connection may be idle for so long between two requests.
  std::chrono::milliseconds idle_timeout{60'000};
  /// A client whose socket takes nothing for so long while there is something
  /// to take is hung up on.
  std::chrono::milliseconds write_timeout{30'000};

  /// Completions that run when the server is told to stop may go on for so
  /// long; then they are cut off.
  std::chrono::milliseconds drain{10'000};
  /// For answers to leave after that.
  std::chrono::milliseconds last_answers{5'000};

  completion_limits completions;
};

} // namespace serve
