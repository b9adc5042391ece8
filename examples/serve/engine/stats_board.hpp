// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/engine/engine_stats.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

namespace serve {

/// Where the engine's thread pins its counters for others to read.
///
/// Thread-safety: `publish` is the engine's thread's, the rest anybody's.
class stats_board {
public:
  void publish(const engine_stats& now, std::uint64_t answered) {
    {
      const auto guard = std::lock_guard{mutex_};
      latest_ = now;
      answered_ = answered;
    }
    changed_.notify_all();
  }

  [[nodiscard]] engine_stats latest() const {
    const auto guard = std::lock_guard{mutex_};
    return latest_;
  }

  /// Numbers a question to the cache; the caller passes it on.
  [[nodiscard]] std::uint64_t ask() {
    const auto guard = std::lock_guard{mutex_};
    return ++asked_;
  }

  [[nodiscard]] std::uint64_t asked() const {
    const auto guard = std::lock_guard{mutex_};
    return asked_;
  }

  /// Waits for the answer to a question.
  [[nodiscard]] std::optional<engine_stats>
  await(std::uint64_t question, std::chrono::milliseconds timeout) const {
    auto guard = std::unique_lock{mutex_};
    if (!changed_.wait_for(guard, timeout,
                           [this, question] { return answered_ >= question; }))
      return std::nullopt;
    return latest_;
  }

private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  engine_stats latest_;
  std::uint64_t asked_ = 0;
  std::uint64_t answered_ = 0;
};

} // namespace serve
