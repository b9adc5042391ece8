// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "gpu/cuda/owner.hpp"

#include <cstddef>
#include <cstdint>

namespace kvtide::gpu {

using pinned_buffer = owner<void*, ::cudaFreeHost>;

/// Takes `bytes` bytes of host memory that the device reads and writes at the
/// addresses that `device_address_of` gives. Takes long and may stop the
/// device: at start only.
[[nodiscard]] inline result<pinned_buffer>
make_pinned_buffer(std::uint64_t bytes) {
  void* made = nullptr;
  if (auto failed
      = check("cudaHostAlloc",
              ::cudaHostAlloc(&made, bytes,
                              cudaHostAllocPortable | cudaHostAllocMapped));
      failed.code != ec::none)
    return failed;
  return pinned_buffer{made};
}

/// Where the current device sees pinned host memory.
[[nodiscard]] inline result<void*> device_address_of(void* host) {
  void* there = nullptr;
  if (auto failed = check("cudaHostGetDevicePointer",
                          ::cudaHostGetDevicePointer(&there, host, 0));
      failed.code != ec::none)
    return failed;
  return there;
}

} // namespace kvtide::gpu
