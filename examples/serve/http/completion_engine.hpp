// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the server knows of the engine. `serving_engine` has these calls; tests
/// put another one in its place.

#pragma once

#include "kvtide/result.hpp"

#include "examples/serve/engine/completion.hpp"
#include "examples/serve/engine/engine_stats.hpp"

#include <functional>

namespace serve {

/// Takes completions. What each call means is said at `serving_engine`.
///
/// Thread-safety: all calls from any thread. Blocking: none of them, as the
/// thread that calls serves all sockets.
class completion_engine {
public:
  completion_engine() = default;
  completion_engine(const completion_engine&) = delete;
  completion_engine& operator=(const completion_engine&) = delete;
  virtual ~completion_engine() = default;

  virtual kvtide::result<completion_id> submit(completion_request request,
                                               completion_callbacks callbacks)
    = 0;

  virtual void abort(completion_id id) = 0;

  /// Asks for counters that are not older than this call, if they can be had.
  /// @param done Called exactly once with them, from any thread; or never, if
  ///             the engine stops first.
  virtual void ask_stats(std::function<void(const engine_stats&)> done) = 0;
};

} // namespace serve
