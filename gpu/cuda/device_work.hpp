// SPDX-License-Identifier: Apache-2.0

/// @file
/// What `device_memory` and `compute_stream` are on a GPU.

#pragma once

#include "kvtide/result.hpp"

#include "gpu/work_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kvtide::gpu {

/// Takes memory of a device; the last owner gives it back.
/// @param bytes at least 1
/// @returns `ec::unsupported` without such a device or in a build without CUDA,
///          `ec::out_of_memory`, `ec::device_failure`
[[nodiscard]] result<std::shared_ptr<std::byte>>
allocate_cuda_memory(int device, std::uint64_t bytes);

/// A stream of a device.
/// @returns `ec::unsupported` without such a device or in a build without CUDA,
///          `ec::device_failure`
[[nodiscard]] result<std::unique_ptr<work_queue>> make_cuda_queue(int device);

} // namespace kvtide::gpu
