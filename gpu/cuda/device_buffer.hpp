// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "gpu/cuda/owner.hpp"

#include <cstddef>
#include <cstdint>

namespace kvtide::gpu {

using device_buffer = owner<void*, ::cudaFree>;

/// Takes `bytes` bytes of the current device's memory.
[[nodiscard]] inline result<device_buffer>
make_device_buffer(std::uint64_t bytes) {
  void* made = nullptr;
  if (auto failed = check("cudaMalloc", ::cudaMalloc(&made, bytes));
      failed.code != ec::none)
    return failed;
  return device_buffer{made};
}

} // namespace kvtide::gpu
