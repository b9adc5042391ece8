// SPDX-License-Identifier: Apache-2.0

/// @file
/// Compute that lasts until a test lets it end.

#pragma once

#include "gpu/cuda/cuda.hpp"

#include <cstdint>

namespace kvtide::gpu {

/// Enqueues work that ends when `*flag` is no longer zero: a kernel that spins,
/// or its twin.
/// @param flag mapped host memory, at its device address
cudaError_t launch_gate(const std::uint32_t* flag, cudaStream_t stream);

/// Lets it end.
/// @param flag the same, at its host address
/// @param on_device at its device address
void open_gate(std::uint32_t* flag, const std::uint32_t* on_device);

} // namespace kvtide::gpu
