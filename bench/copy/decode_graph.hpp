// SPDX-License-Identifier: Apache-2.0

/// @file
/// The kernels of a decode-like step as a CUDA graph. Its twin in
/// decode_graph_twin.cpp does the same to the stand-in for the CUDA runtime.

#pragma once

#include "gpu/cuda/owner.hpp"

#include <cstdint>

namespace kvtide::bench {

struct decode_graph;

/// Captures kernels that follow one another; each reads and writes as many
/// bytes of its own.
/// @param memory `kernels * bytes` bytes of the current device
/// @param bytes a multiple of 16
/// @param stream idle; captures
[[nodiscard]] cudaError_t make_decode_graph(void* memory, std::uint64_t bytes,
                                            std::uint32_t kernels,
                                            cudaStream_t stream,
                                            decode_graph** out);

[[nodiscard]] cudaError_t launch_decode_graph(decode_graph* what,
                                              cudaStream_t stream);

/// @pre no launch is under way
cudaError_t destroy_decode_graph(decode_graph* what);

using decode_graph_owner = gpu::owner<decode_graph*, destroy_decode_graph>;

} // namespace kvtide::bench
