// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

namespace kvtide::gpu {

/// Set by threads that copy, waited for by the one that polls. Threads hold it
/// together with whoever polls, which may go first. Safe from any thread.
class wake_signal {
public:
  /// @param then called after each `set`, on its thread; may be empty
  explicit wake_signal(std::function<void()> then = {})
    : then_(std::move(then)) {
    // nop
  }

  void set() {
    {
      const std::lock_guard lock{mutex_};
      set_ = true;
    }
    changed_.notify_all();
    if (then_)
      then_();
  }

  /// Blocks until it is set, and takes that back.
  /// @returns false if `timeout` passed first
  [[nodiscard]] bool wait(std::chrono::nanoseconds timeout) {
    std::unique_lock lock{mutex_};
    if (!changed_.wait_for(lock, timeout, [this] { return set_; }))
      return false;
    set_ = false;
    return true;
  }

private:
  const std::function<void()> then_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

} // namespace kvtide::gpu
