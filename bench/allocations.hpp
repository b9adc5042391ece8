// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>

namespace kvtide::bench {

/// What `operator new` of this program has handed out. Counts on all threads;
/// a program gets the counting operators by linking allocations.cpp.
struct allocations {
  std::size_t count = 0;
  std::size_t bytes = 0;
  /// Bytes that were not given back yet, as the allocator rounds them.
  std::size_t live_bytes = 0;
};

[[nodiscard]] allocations allocations_so_far() noexcept;

} // namespace kvtide::bench
