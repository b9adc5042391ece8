// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/copy_kernel.hpp"

namespace kvtide::gpu {

namespace {

constexpr unsigned int warp_lanes = 32;
constexpr unsigned int threads_per_block = 1024;

/// Loads of one thread before its first store: what keeps the link busy is the
/// number of bytes that are under way.
constexpr int unroll = 8;

__device__ void copy_bytes(char* dst, const char* src, std::uint64_t bytes,
                           unsigned int lane) {
  for (std::uint64_t i = lane; i < bytes; i += warp_lanes)
    dst[i] = src[i];
}

/// @pre both addresses are multiples of 16
__device__ void copy_words(uint4* dst, const uint4* src, std::uint64_t count,
                           unsigned int lane) {
  constexpr auto stride = std::uint64_t{warp_lanes} * unroll;
  std::uint64_t i = lane;
  for (; i + stride - warp_lanes < count; i += stride) {
    uint4 held[unroll];
#pragma unroll
    for (int j = 0; j < unroll; ++j)
      held[j] = src[i + j * warp_lanes];
#pragma unroll
    for (int j = 0; j < unroll; ++j)
      dst[i + j * warp_lanes] = held[j];
  }
  for (; i < count; i += warp_lanes)
    dst[i] = src[i];
}

__device__ void copy_piece_by_warp(const copy_piece& piece, unsigned int lane) {
  auto* dst = static_cast<char*>(piece.dst);
  const auto* src = static_cast<const char*>(piece.src);
  auto left = piece.bytes;
  const auto off = reinterpret_cast<std::uintptr_t>(dst) % 16;
  if (off != reinterpret_cast<std::uintptr_t>(src) % 16)
    return copy_bytes(dst, src, left, lane);
  const auto head = min(left, std::uint64_t{(16 - off) % 16});
  copy_bytes(dst, src, head, lane);
  dst += head;
  src += head;
  left -= head;
  const auto words = left / 16;
  copy_words(reinterpret_cast<uint4*>(dst), reinterpret_cast<const uint4*>(src),
             words, lane);
  copy_bytes(dst + words * 16, src + words * 16, left % 16, lane);
}

/// One warp per piece, in turn.
__global__ void __launch_bounds__(threads_per_block)
  copy_pieces(const copy_piece* table, std::uint32_t count) {
  const auto thread = blockIdx.x * blockDim.x + threadIdx.x;
  const auto lane = thread % warp_lanes;
  const auto warps = gridDim.x * blockDim.x / warp_lanes;
  for (auto i = thread / warp_lanes; i < count; i += warps)
    copy_piece_by_warp(table[i], lane);
}

} // namespace

cudaError_t launch_copy_pieces(const copy_piece* table, std::uint32_t count,
                               std::uint32_t blocks, cudaStream_t stream) {
  const auto needed = (count + threads_per_block / warp_lanes - 1)
                    / (threads_per_block / warp_lanes);
  const auto used = needed == 0 ? 1 : needed < blocks ? needed : blocks;
  // By the call that returns its own status: the last error of the thread may
  // be somebody else's (MEM-01).
  void* arguments[] = {&table, &count};
  return cudaLaunchKernel(reinterpret_cast<const void*>(copy_pieces),
                          dim3(used), dim3(threads_per_block), arguments, 0,
                          stream);
}

} // namespace kvtide::gpu
