// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>

namespace kvtide::test {

inline std::size_t count_entries(const char* folder) {
  return static_cast<std::size_t>(
    std::distance(std::filesystem::directory_iterator{folder}, {}));
}

/// Descriptors of this process.
inline std::size_t open_files() {
  return count_entries("/proc/self/fd");
}

inline std::size_t threads() {
  return count_entries("/proc/self/task");
}

} // namespace kvtide::test
