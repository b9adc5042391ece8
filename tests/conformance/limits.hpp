// SPDX-License-Identifier: Apache-2.0

/// @file
/// Ranges of numbers in vector files, wide enough for everything that fits into
/// this machine's memory.

#pragma once

#include <cstdint>
#include <limits>

namespace kvtide::conformance {

inline constexpr std::int64_t max_tokens = 1'000'000'000'000;
inline constexpr std::int64_t max_group_tokens = 1'000'000'000;
inline constexpr std::int64_t max_host_chunks = 1'000'000;
inline constexpr std::int64_t max_ranks = 64;
inline constexpr std::int64_t max_groups = 64;
inline constexpr std::int64_t max_id = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t max_block
  = std::numeric_limits<std::uint32_t>::max();

} // namespace kvtide::conformance
