// SPDX-License-Identifier: Apache-2.0

/// @file
/// What `GET /metrics` says.

#pragma once

#include "examples/serve/engine/engine_stats.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace serve {

/// What a client was doing when its connection ended under it.
enum class disconnect_phase : std::uint8_t {
  /// It had sent a part of a request.
  half_request,
  /// Its completion had no token yet.
  before_first_token,
  /// Its completion had some.
  in_the_middle,
  /// All was decided, and a part of the answer not sent.
  while_answering,
};

/// Why the server hung up on a client.
enum class client_fault : std::uint8_t {
  /// It did not read its answer.
  slow_reader,
  /// It took too long over its request.
  slow_request,
  /// It sent too much before it had its answer.
  too_much_ahead,
};

/// Counts what the server sees, and puts it beside what the engine says, in the
/// text format of Prometheus. docs/serve.md has the list.
///
/// Thread-safety: one thread, that of the sockets.
class server_metrics {
public:
  server_metrics();
  server_metrics(const server_metrics&) = delete;
  server_metrics& operator=(const server_metrics&) = delete;
  ~server_metrics();

  void connection_opened();
  void connection_closed();
  /// One that was turned away, as there are too many.
  void connection_refused();
  void disconnected(disconnect_phase phase);
  void client_dropped(client_fault why);

  void answered(unsigned status);
  void completion_started();
  void completion_ended();
  /// @param waited From the whole request until its first token came.
  void first_token(std::chrono::nanoseconds waited);
  /// @param taken From the whole request until its answer was complete.
  void completed(std::chrono::nanoseconds taken);

  /// Everything, with `engine` as it is now.
  [[nodiscard]] std::string text(const engine_stats& engine) const;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace serve
