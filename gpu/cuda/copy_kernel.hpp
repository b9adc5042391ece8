// SPDX-License-Identifier: Apache-2.0

/// @file
/// The kernel that gathers and scatters small fragments.

#pragma once

#include "gpu/cuda/cuda.hpp"

#include <cstdint>

namespace kvtide::gpu {

/// One contiguous copy, at addresses of the device.
struct copy_piece {
  void* dst = nullptr;
  const void* src = nullptr;
  std::uint64_t bytes = 0;
};

/// Longer fragments are cut for the table, so that no warp works long after the
/// others are done. A multiple of 16.
inline constexpr std::uint64_t longest_piece = 32 << 10;

/// Enqueues the copies of a table. Accesses are 16 bytes wide where both
/// addresses are alike modulo 16, else a byte. Pieces are copied in any order,
/// `blocks` thread blocks at a time at most.
/// @param table on the device or in mapped host memory, at its device address;
///              must stay as it is until the kernel has ended
/// @param blocks at least 1
/// @returns what the launch returned
[[nodiscard]] cudaError_t launch_copy_pieces(const copy_piece* table,
                                             std::uint32_t count,
                                             std::uint32_t blocks,
                                             cudaStream_t stream);

} // namespace kvtide::gpu
