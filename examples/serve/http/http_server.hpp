// SPDX-License-Identifier: Apache-2.0

/// @file
/// Start here: the server, as its main function sees it.

#pragma once

#include "kvtide/result.hpp"

#include "examples/serve/http/completion_engine.hpp"
#include "examples/serve/http/server_options.hpp"

#include <cstdint>
#include <memory>

namespace serve {

/// What became of the completions that ran when the server was told to stop.
struct drain_report {
  /// Completed, as if nothing had been.
  std::uint64_t finished = 0;
  /// Aborted when the time was up, or by their clients meanwhile.
  std::uint64_t cut_off = 0;
  /// The engine did not say that they ended. Stop it before this server is
  /// destroyed.
  std::uint64_t unended = 0;
};

/// An HTTP/1.1 server in front of an engine. One thread, the caller of `run`,
/// has all sockets; what the engine says on threads of its own is handed over
/// to that one.
///
/// * A client that goes away aborts its completion, whatever that is doing.
///   Closing only one direction counts as going away.
/// * Requests that are sent without waiting for answers are served one after
///   the other.
/// * SIGTERM and SIGINT, from `listen` on, are `stop`; a second one cuts off at
///   once, further ones change nothing. They stay caught until the destructor.
///
/// Thread-safety: `stop` from any thread, all else from one.
class http_server {
public:
  /// Opens the socket; nothing is accepted before `run`. `engine` is borrowed
  /// and must live, and call back, no longer than this object.
  /// @returns `ec::invalid_options` if there is no such address or the port is
  ///          taken; `ec::out_of_memory` if the system refuses open files
  static kvtide::result<std::unique_ptr<http_server>>
  listen(const server_options& opts, completion_engine& engine);

  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;
  ~http_server();

  /// The port that was chosen.
  [[nodiscard]] std::uint16_t port() const noexcept;

  /// Serves until `stop`, then until all completions ended or
  /// `server_options::drain` and `last_answers` passed. Blocks.
  drain_report run();

  /// Accepts nobody any more, and lets `run` come to its end.
  void stop();

private:
  struct impl;
  explicit http_server(std::unique_ptr<impl> ptr) noexcept;
  std::unique_ptr<impl> impl_;
};

} // namespace serve
