// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/http/completion_engine.hpp"
#include "examples/serve/http/server_metrics.hpp"
#include "examples/serve/http/server_options.hpp"

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>

namespace serve {

class connection;

/// What all connections of a server share. Belongs to the thread of the
/// sockets.
struct server_state {
  server_state(server_options options, completion_engine& behind)
    : opts(std::move(options)), engine(behind) {
    // nop
  }

  server_options opts;
  completion_engine& engine;
  server_metrics metrics;
  /// Those that are open; each adds and removes itself.
  std::set<connection*> connections;
  /// Of answers; the last one that was given.
  std::uint64_t last_number = 0;
  /// Completions that were submitted, and whose end was not told yet.
  std::uint64_t open_completions = 0;
  /// Nobody new is served.
  bool draining = false;
  /// Completions that ended since then.
  std::uint64_t finished = 0;
  std::uint64_t cut_off = 0;
  /// Called when a connection or a completion ended.
  std::function<void()> on_less;
  /// One thread runs it. Goes first, as its operations know all the above.
  boost::asio::io_context io{1};
};

} // namespace serve
