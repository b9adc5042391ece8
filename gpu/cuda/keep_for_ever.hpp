// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <mutex>
#include <utility>
#include <vector>

namespace kvtide::gpu {

/// Keeps something for as long as the process lives, because the device or a
/// thread of the driver may still use it (G7). It stays reachable, so that leak
/// checkers see that it is meant.
template <class T>
void keep_for_ever(T what) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<T>;
  const std::lock_guard lock{mutex};
  kept->push_back(std::move(what));
}

} // namespace kvtide::gpu
