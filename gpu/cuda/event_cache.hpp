// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "gpu/cuda/event.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace kvtide::gpu {

/// Timed events that are used again and again. Only an event that is
/// complete, and that nobody will be told to wait for, may be put back (G2).
class event_cache {
public:
  [[nodiscard]] result<cuda_event> take() {
    if (free_.empty())
      return make_event(true);
    auto taken = std::move(free_.back());
    free_.pop_back();
    return taken;
  }

  /// Makes some now rather than while serving.
  [[nodiscard]] error reserve(std::size_t count) {
    while (free_.size() < count) {
      auto made = make_event(true);
      if (!made)
        return made.failure();
      free_.push_back(std::move(made).value());
    }
    return {};
  }

  void put(cuda_event back) {
    if (back.get() != nullptr)
      free_.push_back(std::move(back));
  }

  /// Leaks them (G7).
  void abandon() noexcept {
    for (auto& one : free_)
      one.release();
  }

private:
  std::vector<cuda_event> free_;
};

} // namespace kvtide::gpu
