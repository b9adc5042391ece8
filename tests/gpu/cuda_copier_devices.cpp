// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/device_scope.hpp"
#include "gpu/cuda/handles.hpp"
#include "gpu/cuda/pinned_buffer.hpp"
#include "gpu/cuda/stream.hpp"
#include "tests/gpu/compute_gate.hpp"
#include "tests/gpu/copier_rig.hpp"
#include "tests/gpu/cuda_machine.hpp"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kvtide::gpu {

namespace {

/// Compute that spins in a stream of its own.
struct gate {
  cuda_stream where;
  pinned_buffer flag;
  const std::uint32_t* on_device = nullptr;
};

copier_compute hold_on_gpu(copier& owner) {
  auto made = std::make_shared<gate>();
  made->where = make_stream().value();
  made->flag = make_pinned_buffer(sizeof(std::uint32_t)).value();
  auto* flag = static_cast<std::uint32_t*>(made->flag.get());
  *flag = 0;
  made->on_device
    = static_cast<const std::uint32_t*>(device_address_of(flag).value());
  ignore(launch_gate(made->on_device, made->where.get()));
  const auto event = owner.record(to_number(made->where.get())).value();
  return {event, [made = std::move(made), flag] {
            open_gate(flag, made->on_device);
            ignore(::cudaStreamSynchronize(made->where.get()));
          }};
}

} // namespace

std::vector<copier_device> copier_devices() {
  auto gpu = copier_device{"cuda"};
  gpu.device = 0;
  gpu.begin = start_cuda_machine;
  gpu.missing = missing_cuda_machine;
  gpu.check = check_cuda_machine;
  gpu.hold = hold_on_gpu;
  return {gpu};
}

} // namespace kvtide::gpu
