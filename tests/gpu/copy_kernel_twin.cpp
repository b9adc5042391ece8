// SPDX-License-Identifier: Apache-2.0

/// @file
/// The CPU twin of gpu/cuda/copy_kernel.cu.

#include "gpu/cuda/copy_kernel.hpp"
#include "tests/gpu/cuda_stand_in/stand_in.hpp"

#include <cstring>
#include <vector>

namespace kvtide::gpu {

namespace {

/// Reads the table when it runs, as a kernel does.
void copy_every_second(const copy_piece* table, std::uint32_t count,
                       std::uint32_t first) {
  const auto* pieces = stand_in::device_view_of(table, count);
  for (auto i = first; i < count; i += 2) {
    const auto& x = pieces[i];
    std::memcpy(stand_in::device_view(x.dst, x.bytes),
                stand_in::device_view(x.src, x.bytes), x.bytes);
  }
}

} // namespace

cudaError_t launch_copy_pieces(const copy_piece* table, std::uint32_t count,
                               std::uint32_t blocks, cudaStream_t stream) {
  if (blocks == 0)
    return cudaErrorInvalidConfiguration;
  auto touches = std::vector<stand_in::memory_range>{};
  if (count > 0) {
    touches.push_back({table, count * sizeof(copy_piece)});
    const auto* pieces = stand_in::device_view_of(table, count);
    for (std::uint32_t i = 0; pieces != nullptr && i < count; ++i) {
      touches.push_back({pieces[i].dst, pieces[i].bytes});
      touches.push_back({pieces[i].src, pieces[i].bytes});
    }
  }
  // No order among pieces: the second half has every other one.
  return stand_in::enqueue(
    stream, [=] { copy_every_second(table, count, 1); },
    [=] { copy_every_second(table, count, 0); }, std::move(touches));
}

} // namespace kvtide::gpu
