// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "actors/ready_fd.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace kvtide {

/// Where actors leave what a host thread polls: the border between messages and
/// the caller's own loop, and the one place of the facade with a lock. It is
/// held for a push or a swap, never while something else is called.
///
/// Thread-safety: any number of threads may push, one polls.
template <class Event>
class event_queue {
public:
  explicit event_queue(ready_fd ready) : ready_(std::move(ready)) {
    // nop
  }

  void push(Event event) {
#ifndef KVTIDE_FAULT_NO_QUEUE_LOCK // tests/races
    const auto guard = std::lock_guard{mutex_};
#endif
    events_.push_back(std::move(event));
    if (events_.size() == 1)
      ready_.signal(); // Once per change from empty to not empty.
  }

  /// Moves out everything that was pushed, in order.
  [[nodiscard]] std::vector<Event> poll() {
    const auto guard = std::lock_guard{mutex_};
    if (!events_.empty())
      ready_.clear();
    return std::exchange(events_, {});
  }

  [[nodiscard]] const ready_fd& ready() const noexcept {
    return ready_;
  }

private:
  std::mutex mutex_;
  std::vector<Event> events_;
  ready_fd ready_;
};

} // namespace kvtide
