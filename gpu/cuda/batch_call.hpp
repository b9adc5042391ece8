// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "gpu/cuda/cuda.hpp"

#include <cstddef>

namespace kvtide::gpu {

/// `cudaMemcpyBatchAsync` in the form that this toolkit has: with nine
/// arguments in 12.8 and 12.9, with eight from 13.0 on (G4). Sources are read
/// in stream order: a store reads what compute has written before.
inline cudaError_t copy_batch(void** dsts, void** srcs, std::size_t* sizes,
                              std::size_t count, cudaStream_t stream) {
  auto how = cudaMemcpyAttributes{};
  how.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  how.flags = cudaMemcpyFlagPreferOverlapWithCompute;
  auto from_first = std::size_t{0};
#if CUDART_VERSION >= 13000
  return ::cudaMemcpyBatchAsync(dsts, srcs, sizes, count, &how, &from_first, 1,
                                stream);
#else
  auto failed_at = std::size_t{0};
  return ::cudaMemcpyBatchAsync(dsts, srcs, sizes, count, &how, &from_first, 1,
                                &failed_at, stream);
#endif
}

} // namespace kvtide::gpu
