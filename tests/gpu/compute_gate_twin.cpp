// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/compute_gate.hpp"
#include "tests/gpu/cuda_stand_in/stand_in.hpp"

namespace kvtide::gpu {

cudaError_t launch_gate(const std::uint32_t* flag, cudaStream_t stream) {
  const auto range = stand_in::memory_range{flag, sizeof(*flag)};
  stand_in::hang(range);
  return stand_in::enqueue(
    stream, [] {}, [] {}, {range});
}

void open_gate(std::uint32_t* flag, const std::uint32_t* on_device) {
  *flag = 1;
  stand_in::release_hanging({on_device, sizeof(*on_device)});
}

} // namespace kvtide::gpu
