// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/error.hpp"

#include "gpu/cuda/cuda.hpp"

namespace kvtide::gpu {

/// Turns what a CUDA call returned into a value, and takes the error back from
/// where the next check of somebody else would find it (MEM-01).
/// @param call its name, for the sentence
/// @returns no error if it succeeded, else `ec::out_of_memory` or
///          `ec::device_failure` with the name and CUDA's own text
[[nodiscard]] error check(const char* call, cudaError_t status);

/// As `check`, for calls whose failure has nobody to tell: those that give back
/// what a context holds, which may be gone.
void ignore(cudaError_t status) noexcept;

} // namespace kvtide::gpu
