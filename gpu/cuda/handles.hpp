// SPDX-License-Identifier: Apache-2.0

/// @file
/// CUDA's handles without CUDA's headers, for headers that others include.

#pragma once

#include <cstdint>

struct CUstream_st;
struct CUevent_st;

namespace kvtide::gpu {

/// The type that `cudaStream_t` names.
using stream_handle = CUstream_st*;

/// The type that `cudaEvent_t` names.
using event_handle = CUevent_st*;

/// As handles travel in messages and in the public interface.
inline stream_handle to_stream(std::uint64_t handle) noexcept {
  return reinterpret_cast<stream_handle>(handle);
}

inline std::uint64_t to_number(event_handle handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle);
}

inline std::uint64_t to_number(stream_handle handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle);
}

} // namespace kvtide::gpu
