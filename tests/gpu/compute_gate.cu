// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/compute_gate.hpp"

#include <atomic>

namespace kvtide::gpu {

namespace {

__global__ void spin(const volatile std::uint32_t* flag) {
  while (*flag == 0)
    __nanosleep(1000);
}

} // namespace

cudaError_t launch_gate(const std::uint32_t* flag, cudaStream_t stream) {
  spin<<<1, 1, 0, stream>>>(flag);
  return cudaGetLastError();
}

void open_gate(std::uint32_t* flag, const std::uint32_t*) {
  std::atomic_ref<std::uint32_t>{*flag}.store(1);
}

} // namespace kvtide::gpu
