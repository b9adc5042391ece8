// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/status.hpp"

#include <string>

namespace kvtide::gpu {

error check(const char* call, cudaError_t status) {
  if (status == cudaSuccess)
    return {};
  ignore(status);
  const auto code = status == cudaErrorMemoryAllocation ? ec::out_of_memory
                                                        : ec::device_failure;
  return {code, std::string{call} + ": " + ::cudaGetErrorString(status) + " ("
                  + ::cudaGetErrorName(status) + ")"};
}

void ignore(cudaError_t status) noexcept {
  if (status != cudaSuccess)
    (void)::cudaGetLastError();
}

} // namespace kvtide::gpu
