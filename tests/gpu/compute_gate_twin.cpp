// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/compute_gate.hpp"
#include "tests/gpu/cuda_stand_in/stand_in.hpp"

#include <atomic>

namespace kvtide::gpu {

namespace {

/// The last look of the kernel, which sees what the host did before it let it
/// end.
void look(const std::uint32_t* on_device) {
  auto* flag = stand_in::device_view_of(on_device, 1);
  (void)std::atomic_ref{const_cast<std::uint32_t&>(*flag)}.load();
}

} // namespace

cudaError_t launch_gate(const std::uint32_t* flag, cudaStream_t stream) {
  const auto range = stand_in::memory_range{flag, sizeof(*flag)};
  stand_in::hang(range);
  return stand_in::enqueue(
    stream, [] {}, [flag] { look(flag); }, {range});
}

void open_gate(std::uint32_t* flag, const std::uint32_t* on_device) {
  std::atomic_ref{*flag}.store(1);
  stand_in::release_hanging({on_device, sizeof(*on_device)});
}

} // namespace kvtide::gpu
