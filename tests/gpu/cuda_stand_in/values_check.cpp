// SPDX-License-Identifier: Apache-2.0

/// @file
/// Compiled against the stand-in's header and, where there is a toolkit,
/// against CUDA's: both must have the same numbers and, where it is passed by
/// pointer in both, the same layout.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <type_traits>

#define KVTIDE_ERROR(name, value, sentence) static_assert(name == value);
#define KVTIDE_VALUE(name, value) static_assert(name == value);
#include "tests/gpu/cuda_stand_in/values.def"
#undef KVTIDE_ERROR
#undef KVTIDE_VALUE

static_assert(std::is_same_v<cudaStream_t, struct CUstream_st*>);
static_assert(std::is_same_v<cudaEvent_t, struct CUevent_st*>);
static_assert(std::is_same_v<cudaGraph_t, struct CUgraph_st*>);
static_assert(std::is_same_v<cudaHostFn_t, void (*)(void*)>);

static_assert(sizeof(cudaMemLocation) == 8);
static_assert(sizeof(cudaMemcpyAttributes) == 24);
static_assert(offsetof(cudaMemcpyAttributes, srcAccessOrder) == 0);
static_assert(offsetof(cudaMemcpyAttributes, srcLocHint) == 4);
static_assert(offsetof(cudaMemcpyAttributes, dstLocHint) == 12);
static_assert(offsetof(cudaMemcpyAttributes, flags) == 20);
static_assert(sizeof(cudaPointerAttributes)
              == (CUDART_VERSION >= 13000 ? 88 : 24));
static_assert(offsetof(cudaPointerAttributes, device) == 4);
static_assert(offsetof(cudaPointerAttributes, devicePointer) == 8);
static_assert(offsetof(cudaPointerAttributes, hostPointer) == 16);
