// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "gpu/cuda/owner.hpp"

namespace kvtide::gpu {

using cuda_stream = owner<cudaStream_t, ::cudaStreamDestroy>;

/// Makes a stream of the current device that no work of the default stream
/// holds up. Priorities would order kernels, not copies (G3); `urgent` is for
/// streams whose kernels are small.
[[nodiscard]] inline result<cuda_stream> make_stream(bool urgent = false) {
  auto lowest = 0;
  auto highest = 0;
  if (auto failed
      = check("cudaDeviceGetStreamPriorityRange",
              ::cudaDeviceGetStreamPriorityRange(&lowest, &highest));
      failed.code != ec::none)
    return failed;
  auto made = cudaStream_t{};
  if (auto failed
      = check("cudaStreamCreateWithPriority",
              ::cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking,
                                             urgent ? highest : lowest));
      failed.code != ec::none)
    return failed;
  return cuda_stream{made};
}

} // namespace kvtide::gpu
