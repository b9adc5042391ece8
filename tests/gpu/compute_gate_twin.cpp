// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/compute_gate.hpp"
#include "tests/gpu/cuda_stand_in/stand_in.hpp"

#include <atomic>

namespace kvtide::gpu {

cudaError_t launch_gate(const std::uint32_t* flag, cudaStream_t stream) {
  const auto range = stand_in::memory_range{flag, sizeof(*flag)};
  auto* seen = const_cast<std::uint32_t*>(stand_in::device_view_of(flag));
  if (seen == nullptr)
    return cudaErrorInvalidValue;
  stand_in::hang(range);
  // What was written before the gate was opened is there behind it: the read
  // says so to the thread sanitizer, too.
  return stand_in::enqueue(
    stream, [] {}, [seen] { (void)std::atomic_ref{*seen}.load(); }, {range});
}

void open_gate(std::uint32_t* flag, const std::uint32_t* on_device) {
  std::atomic_ref{*flag}.store(1);
  stand_in::release_hanging({on_device, sizeof(*on_device)});
}

} // namespace kvtide::gpu
