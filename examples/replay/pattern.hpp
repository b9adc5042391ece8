// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the model "computes": bytes that follow from a seed and their place, so
/// that they can be told right or wrong without a copy of them.

#pragma once

#include "kvtide/ids.hpp"

#include "examples/replay/mix.hpp"

#include <cstddef>
#include <cstdint>

namespace kvtide::replay {

/// Where in the KV memory of all ranks a stretch of bytes lies, besides its
/// block and its place in the block.
struct kv_plane {
  group_id group = 0;
  std::uint32_t layer = 0;
  /// 0 is K, 1 is V.
  std::uint32_t plane = 0;
  rank_id rank = 0;
};

/// Seed of the bytes of a run of tokens on one plane.
[[nodiscard]] constexpr std::uint64_t plane_seed(std::uint64_t run_seed,
                                                 const kv_plane& at) noexcept {
  const auto low = std::uint64_t{at.layer} << 1 | at.plane;
  return mix(run_seed ^ (std::uint64_t{at.rank} << 48)
             ^ (std::uint64_t{at.group} << 40) ^ low);
}

/// The eight bytes at offset `8 * index` of a block's piece.
[[nodiscard]] constexpr std::uint64_t
pattern_word(std::uint64_t seed, std::uint64_t index) noexcept {
  auto x = (seed + index * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
  return x ^ (x >> 29);
}

/// Writes bytes `[first, last)` of a block's piece.
void fill_pattern(std::byte* piece, std::size_t first, std::size_t last,
                  std::uint64_t seed) noexcept;

/// @returns the first of the bytes `[first, last)` of a block's piece that is
///          not as `fill_pattern` writes it, or `last`.
[[nodiscard]] std::size_t find_difference(const std::byte* piece,
                                          std::size_t first, std::size_t last,
                                          std::uint64_t seed) noexcept;

/// The byte that `fill_pattern` writes at an offset.
[[nodiscard]] std::byte pattern_byte(std::uint64_t seed,
                                     std::size_t offset) noexcept;

} // namespace kvtide::replay
