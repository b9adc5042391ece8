// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>

namespace kvtide::gpu {

/// Holds streams up on purpose, for tests (see `copy_fault`): a host function
/// that returns after a while, or when it is let go.
class stall {
public:
  /// What a host function gets; lives as long as this object.
  struct request {
    stall* home = nullptr;
    std::chrono::nanoseconds time{0};
  };

  [[nodiscard]] request* make_request(nanoseconds_t time) {
    return &requests_.emplace_back(
      request{this, std::chrono::nanoseconds{time}});
  }

  /// Lets all go on, now and later.
  void let_go() {
    {
      const std::lock_guard lock{mutex_};
      over_ = true;
    }
    changed_.notify_all();
  }

  /// A host function for `cudaLaunchHostFunc`; takes a `request*`.
  static void wait(void* data) {
    const auto& what = *static_cast<request*>(data);
    auto& self = *what.home;
    std::unique_lock lock{self.mutex_};
    self.changed_.wait_for(lock, what.time, [&self] { return self.over_; });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::list<request> requests_;
};

} // namespace kvtide::gpu
