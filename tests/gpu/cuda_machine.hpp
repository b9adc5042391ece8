// SPDX-License-Identifier: Apache-2.0

/// @file
/// The machine that a program of CUDA tests runs on: the stand-in or a GPU.

#pragma once

#include <cstddef>
#include <string>

namespace kvtide::gpu {

/// Begins a test.
void start_cuda_machine();

/// Ends it: nothing that was done may have been wrong, or be left over.
void check_cuda_machine();

/// Whether one host function that waits holds up those of other streams.
bool host_functions_share_a_thread();

/// Why there is none, or empty.
std::string missing_cuda_machine();

/// How many fragments it copies in a moment.
std::size_t many_fragments();

} // namespace kvtide::gpu
