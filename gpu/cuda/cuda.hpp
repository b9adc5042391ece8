// SPDX-License-Identifier: Apache-2.0

/// @file
/// The one place that includes CUDA: sources of this folder and nobody else
/// include it. A test program has a stand-in with the same names instead.

#pragma once

#include <cuda_runtime_api.h>

#if CUDART_VERSION < 12080
#error "kvtide needs CUDA 12.8 or newer (cudaMemcpyBatchAsync)"
#endif
