// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "gpu/cuda/owner.hpp"

namespace kvtide::gpu {

using cuda_event = owner<cudaEvent_t, ::cudaEventDestroy>;

/// Makes an event of the current device.
/// @param timed whether `cudaEventElapsedTime` works with it; costs a little
[[nodiscard]] inline result<cuda_event> make_event(bool timed = false) {
  auto made = cudaEvent_t{};
  if (auto failed
      = check("cudaEventCreateWithFlags",
              ::cudaEventCreateWithFlags(
                &made, timed ? cudaEventDefault : cudaEventDisableTiming));
      failed.code != ec::none)
    return failed;
  return cuda_event{made};
}

} // namespace kvtide::gpu
