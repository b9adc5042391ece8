// SPDX-License-Identifier: Apache-2.0

#include "actors/cuda_seat.hpp"

#include "gpu/cuda/devices.hpp"
#include "gpu/cuda_choices.hpp"

#include <utility>

namespace kvtide {

namespace {

std::string describe(int device, const gpu::device_facts& facts) {
  auto out = "GPU " + std::to_string(device) + ": " + facts.name + " at "
           + facts.pci_bus_id + ", driver "
           + std::to_string(facts.driver_version) + ", runtime "
           + std::to_string(facts.runtime_version);
  if (facts.numa_node)
    out += ", NUMA node " + std::to_string(*facts.numa_node);
  return out;
}

} // namespace

result<std::shared_ptr<gpu::pool_registration>> shared_pins::get(int device) {
  const std::lock_guard lock{mutex_};
  if (made_)
    return made_;
  auto made = gpu::pool_registration::make(device);
  if (made)
    made_ = made.value();
  return made;
}

error cuda_seat::open(const kv_memory& memory,
                      const std::shared_ptr<shared_pins>& shared) {
  if (auto refused = gpu::check_on_device(memory); refused.code != ec::none)
    return refused;
  if (events_) {
    if (device_ == memory.device)
      return {};
    return {ec::invalid_argument,
            "kv_memory::device was " + std::to_string(device_)
              + " before and is now " + std::to_string(memory.device)
              + ": register on the same GPU, or start a new runtime"};
  }
  auto facts = gpu::facts_of(memory.device);
  if (!facts)
    return facts.failure();
  auto pins = shared ? shared->get(memory.device)
                     : gpu::pool_registration::make(memory.device);
  if (!pins)
    return pins.failure();
  auto made = gpu::compute_events::make(memory.device);
  if (!made)
    return made.failure();
  device_ = memory.device;
  name_ = describe(device_, facts.value());
  numa_node_ = facts.value().numa_node;
  events_ = std::move(made).value();
  pins_ = std::move(pins).value();
  shares_pins_ = shared != nullptr;
  return {};
}

gpu::host_pool_config cuda_seat::pool_config(const cuda_options& opts,
                                             std::uint64_t host_bytes) const {
  return gpu::pool_config_of(opts, host_bytes, numa_node_, pins_);
}

result<std::unique_ptr<gpu::copy_engine>>
cuda_seat::make_engine(const cuda_options& opts, gpu::wake_function wake,
                       std::shared_ptr<gpu::host_pool_memory> pool) const {
  auto out = gpu::engine_config_of(opts);
  out.wake = std::move(wake);
  out.device = device_;
  out.events = events_;
  if (pool->status().pinned)
    out.pool = pins_;
  out.keep = std::move(pool);
  return gpu::make_cuda_copy_engine(std::move(out));
}

compute_calls
cuda_seat::calls(const std::vector<std::uint64_t>& streams) const {
  auto out = compute_calls{};
  out.record = [events = events_](std::uint64_t stream) {
    return events->record(stream);
  };
  out.check_not_capturing = [events = events_, streams] {
    return events->check_not_capturing(streams);
  };
  return out;
}

void cuda_seat::abandon() {
  if (events_)
    events_->abandon();
  if (pins_ && !shares_pins_)
    pins_->abandon();
}

} // namespace kvtide
