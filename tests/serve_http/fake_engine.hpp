// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/http/completion_engine.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace serve {

/// Does what a test tells it, on the test's thread, which so plays the
/// engine's. All waits end after ten seconds, if
/// not told otherwise.
class fake_engine : public completion_engine {
public:
  /// Whether `abort` ends the request at once; otherwise a test does.
  std::atomic<bool> obedient = true;

  /// Whether counters that are asked for come.
  std::atomic<bool> has_stats = true;

  /// Returned by `submit` in the place of an id, if its code is set.
  void refuse_with(kvtide::error reason);

  /// Waits until so many requests in all were submitted; returns the last one's
  /// id, or zero if they were not.
  completion_id wait_for_submits(std::size_t count,
                                 std::chrono::seconds patience
                                 = std::chrono::seconds{10});

  /// True if this request was aborted, or is within the time.
  bool wait_for_abort(completion_id id);

  [[nodiscard]] bool aborted(completion_id id);
  [[nodiscard]] completion_request request(completion_id id);

  /// Both have no effect on a request that has ended.
  void say(completion_id id, std::string_view text);
  void end(completion_id id, completion_end why);

  // -- what the server calls --------------------------------------------------

  kvtide::result<completion_id> submit(completion_request request,
                                       completion_callbacks callbacks) override;
  void abort(completion_id id) override;
  void ask_stats(std::function<void(const engine_stats&)> done) override;

private:
  struct entry {
    completion_request request;
    completion_callbacks callbacks;
    bool aborted = false;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<completion_id, entry> entries_;
  kvtide::error refusal_;
};

} // namespace serve
