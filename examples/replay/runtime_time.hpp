// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

namespace kvtide::replay {

/// Wall time that the engine's thread spent in the runtime. All other time is
/// the model's: it plans, and fills and compares bytes.
struct runtime_time {
  /// In calls of the runtime and its ranks that a serving engine makes, each
  /// until its answer, if it has one.
  std::chrono::nanoseconds calls{0};
  /// Looking for notices, and asking for cache events and counters.
  std::chrono::nanoseconds news{0};
  /// Waiting while the model had nothing else to do. Real clock: for a notice.
  /// Simulated clock: until time had moved and the copies that were due by then
  /// were made.
  std::chrono::nanoseconds waits{0};

  /// The longest of the calls, and which it was.
  std::chrono::nanoseconds longest{0};
  const char* longest_call = "";

  [[nodiscard]] std::chrono::nanoseconds all() const noexcept {
    return calls + news + waits;
  }
};

/// Adds the wall time of a scope to a sum.
class stopwatch {
public:
  using clock = std::chrono::steady_clock;

  explicit stopwatch(std::chrono::nanoseconds& sum) : sum_(sum) {
    // nop
  }

  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;

  ~stopwatch() {
    sum_ += clock::now() - start_;
  }

private:
  std::chrono::nanoseconds& sum_;
  clock::time_point start_ = clock::now();
};

/// The same for a call that the engine's loop waits for.
class call_watch {
public:
  call_watch(runtime_time& times, const char* call) noexcept
    : times_(times), call_(call) {
    // nop
  }

  call_watch(const call_watch&) = delete;
  call_watch& operator=(const call_watch&) = delete;

  ~call_watch() {
    const auto span = stopwatch::clock::now() - start_;
    times_.calls += span;
    if (span > times_.longest) {
      times_.longest = span;
      times_.longest_call = call_;
    }
  }

private:
  runtime_time& times_;
  const char* call_;
  stopwatch::clock::time_point start_ = stopwatch::clock::now();
};

/// What the devices of all ranks copied.
struct copy_work {
  std::uint64_t bytes = 0;
  /// Wall time of the copying alone, summed over all streams.
  std::chrono::nanoseconds time{0};
};

} // namespace kvtide::replay
