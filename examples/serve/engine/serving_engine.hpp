// SPDX-License-Identifier: Apache-2.0

/// @file
/// Start here: what stands between a server and the model. Whoever answers
/// clients, `examples/serve/http` for one, needs this header and
/// `engine_options.hpp` only.

#pragma once

#include "kvtide/result.hpp"

#include "examples/serve/engine/completion.hpp"
#include "examples/serve/engine/engine_options.hpp"
#include "examples/serve/engine/engine_stats.hpp"

#include <chrono>
#include <memory>
#include <optional>

namespace serve {

/// An engine that serves completions: continuous batching, chunked prefill, a
/// prefix cache in device memory, and behind it kvtide with its pool in host
/// memory. Decoding is greedy, so an answer follows from its prompt alone.
///
/// A failure of the cache never ends the engine: it goes on without, after at
/// most a second that copies of the lost cache may take to end. The limit is a
/// copy that never ends. The blocks that it may write are not used again, so
/// that requests which need them wait; `stop` returns in time and says that it
/// runs; but the destructor waits for it, as memory would be freed under it. A
/// process that has to end then leaves by `std::_Exit`.
///
/// Thread-safety: all calls may come from any thread, also from within the
/// callbacks of a completion, except `stop` and the destructor: those may come
/// from one thread that is not the engine's. Blocking: `start`, `fresh_stats`,
/// `stop` and the destructor only. Exceptions: none cross this interface.
class serving_engine {
public:
  /// Makes the model, takes the memory and starts the engine's threads. Blocks
  /// for milliseconds.
  /// @returns `ec::invalid_options`, `ec::out_of_memory`, or what
  ///          `kvtide::runtime::start` refuses.
  static kvtide::result<std::unique_ptr<serving_engine>>
  start(const engine_options& opts);

  serving_engine(const serving_engine&) = delete;
  serving_engine& operator=(const serving_engine&) = delete;

  /// Stops at once, if `stop` was not called: every completion is aborted.
  /// Blocks until no copy runs, which is for ever behind one that never ends.
  ~serving_engine();

  /// Takes a request. Its callbacks may be called before this returns.
  /// @returns the request's id, never zero; or, and then no callback is ever
  ///          called, `ec::invalid_argument` if the prompt is empty,
  ///          `max_tokens` is below 1, or both together are longer than
  ///          `engine_options::max_tokens` or than the device's blocks hold;
  ///          `ec::out_of_memory` if the queue is full: try again later;
  ///          `ec::shutting_down` after `stop`.
  kvtide::result<completion_id> submit(completion_request request,
                                       completion_callbacks callbacks);

  /// Ends a request early, whatever it is doing. Its `on_end` still comes, with
  /// `completion_end::aborted` unless it had ended before. Unknown ids and
  /// those of ended requests have no effect.
  void abort(completion_id id);

  /// Counters as of the engine's last turn, and what the cache said when it
  /// was asked last; asks it again for the next call. Does not block.
  [[nodiscard]] engine_stats stats() const;

  /// The same, after the cache has answered. Blocks up to `timeout`.
  /// @returns nothing if no answer came, or in a callback: that would wait for
  ///          itself
  [[nodiscard]] std::optional<engine_stats>
  fresh_stats(std::chrono::milliseconds timeout) const;

  /// Takes no more requests, serves those that there are until `deadline` has
  /// passed, aborts the rest, and stops: every callback was called when this
  /// returns. Copies may still run; then the report does not say that there is
  /// none. A second call returns the first one's report.
  stop_report stop(std::chrono::milliseconds deadline);

private:
  struct impl;
  explicit serving_engine(std::unique_ptr<impl> ptr) noexcept;
  std::unique_ptr<impl> impl_;
};

} // namespace serve
