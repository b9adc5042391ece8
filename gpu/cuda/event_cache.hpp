// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "gpu/cuda/event.hpp"

#include <utility>
#include <vector>

namespace kvtide::gpu {

/// Events of one kind that are used again and again. Only an event that is
/// complete, and that nobody will be told to wait for, may be put back (G2).
class event_cache {
public:
  explicit event_cache(bool timed) noexcept : timed_(timed) {
    // nop
  }

  [[nodiscard]] result<event> take() {
    if (free_.empty())
      return make_event(timed_);
    auto taken = std::move(free_.back());
    free_.pop_back();
    return taken;
  }

  void put(event back) {
    if (back.get() != nullptr)
      free_.push_back(std::move(back));
  }

  /// Leaks them (G7).
  void abandon() noexcept {
    for (auto& one : free_)
      one.release();
  }

private:
  bool timed_;
  std::vector<event> free_;
};

} // namespace kvtide::gpu
