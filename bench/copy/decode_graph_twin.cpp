// SPDX-License-Identifier: Apache-2.0

/// @file
/// The CPU twin of decode_graph.cu.

#include "bench/copy/decode_graph.hpp"
#include "tests/gpu/cuda_stand_in/stand_in.hpp"

#include <cstddef>

namespace kvtide::bench {

struct decode_graph {
  std::byte* memory;
  std::uint64_t bytes;
  std::uint32_t kernels;
};

cudaError_t make_decode_graph(void* memory, std::uint64_t bytes,
                              std::uint32_t kernels, cudaStream_t,
                              decode_graph** out) {
  *out = new decode_graph{static_cast<std::byte*>(memory), bytes, kernels};
  return cudaSuccess;
}

cudaError_t launch_decode_graph(decode_graph* what, cudaStream_t stream) {
  for (std::uint32_t i = 0; i < what->kernels; ++i) {
    auto* first = what->memory + i * what->bytes;
    const auto count = what->bytes;
    const auto increment = [first, count] {
      auto* data = stand_in::device_view_of(first, count);
      for (std::uint64_t at = 0; at < count; at += 16)
        data[at] = std::byte(std::to_integer<int>(data[at]) + 1);
    };
    if (const auto status
        = stand_in::enqueue(stream, increment, [] {}, {{first, count}});
        status != cudaSuccess)
      return status;
  }
  return cudaSuccess;
}

cudaError_t destroy_decode_graph(decode_graph* what) {
  delete what;
  return cudaSuccess;
}

} // namespace kvtide::bench
