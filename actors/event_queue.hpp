// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/waiting.hpp"

#include "actors/ready_fd.hpp"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace kvtide {

/// Where actors leave what a host thread polls: the border between messages and
/// the caller's own loop, and the one place of the facade with a lock. It is
/// held for a push or a swap, never while the other side is woken: whoever was
/// woken would run into it at once, and wait for a thread that lost its core.
///
/// Thread-safety: any number of threads may push, one polls.
///
/// @tparam Ready what wakes the host thread; another one in tests
template <class Event, class Ready = ready_fd>
class event_queue {
public:
  explicit event_queue(Ready ready) : ready_(std::move(ready)) {
    // nop
  }

  void push(Event event) {
    if (add(std::move(event)))
      ready_.signal(); // Once per change from empty to not empty.
  }

  /// Moves out everything that was pushed, in order.
  [[nodiscard]] std::vector<Event> poll() {
    auto out = std::vector<Event>{};
    const auto guard = std::lock_guard{mutex_};
    out.swap(events_);
    if (signals_ > 0)
      signals_ -= ready_.clear();
    return out;
  }

  /// Blocks until `poll` has something to return. Any thread may.
  /// @returns false if `timeout` passed first
  [[nodiscard]] bool wait(std::chrono::milliseconds timeout) {
    const auto deadline = wait_deadline{timeout};
    for (;;) {
      if (!ready_.wait(deadline.left()))
        return false;
      const auto guard = std::lock_guard{mutex_};
      if (!events_.empty())
        return true;
      signals_ -= ready_.clear(); // A poll had overtaken it.
    }
  }

  [[nodiscard]] const Ready& ready() const noexcept {
    return ready_;
  }

private:
  /// @returns whether there was nothing before
  bool add(Event event) {
#ifndef KVTIDE_FAULT_NO_QUEUE_LOCK // tests/races
    const auto guard = std::lock_guard{mutex_};
#endif
    events_.push_back(std::move(event));
    if (events_.size() > 1)
      return false;
    ++signals_;
    return true;
  }

  std::mutex mutex_;
  std::vector<Event> events_;
  /// Signals that were promised and not cleared yet; one that a poll overtook
  /// comes later, and is cleared by the next poll.
  std::uint64_t signals_ = 0;
  Ready ready_;
};

} // namespace kvtide
