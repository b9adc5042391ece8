// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "gpu/cuda/cuda_copy_engine.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kvtide::explore {

/// Who makes the copies of a run, and how.
struct copy_way {
  std::string name;
  /// One sentence for `--list`.
  std::string about;
  /// The CUDA engine on a machine without a GPU. Otherwise `copy_desk`, which
  /// takes `scenario::stream_fences`.
  bool cuda = false;
  copy_path path = copy_path::automatic;
  fence_wait fences = fence_wait::stream;
  /// The host pool is registered. Otherwise copies go through pinned buffers.
  bool pinned = true;
  std::uint64_t slice_bytes = 1u << 20;
  std::uint64_t bytes_in_flight = 2u << 20;
  std::uint32_t streams_per_direction = 1;
};

/// "desk" first, then all of the CUDA engine.
[[nodiscard]] const std::vector<copy_way>& all_copy_ways();

/// Stands for all ways of the CUDA engine: seeds take them in turn.
inline constexpr const char* cuda_in_turn = "cuda";

/// @returns null if there is none of that name
[[nodiscard]] const copy_way* find_copy_way(const std::string& name);

/// What `name` means for a seed.
/// @pre `name` is `cuda_in_turn`, or that of a way
[[nodiscard]] const copy_way& copy_way_of(const std::string& name,
                                          std::uint64_t seed);

} // namespace kvtide::explore
