// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda_seat.hpp"

#include "gpu/cuda/devices.hpp"
#include "gpu/cuda_choices.hpp"

#include <utility>

namespace kvtide::gpu {

namespace {

std::string describe(int device, const device_facts& facts) {
  auto out = "GPU " + std::to_string(device) + ": " + facts.name + " at "
           + facts.pci_bus_id + ", driver "
           + std::to_string(facts.driver_version) + ", runtime "
           + std::to_string(facts.runtime_version);
  if (facts.numa_node)
    out += ", NUMA node " + std::to_string(*facts.numa_node);
  return out;
}

} // namespace

result<cuda_seat> cuda_seat::make(int device,
                                  std::shared_ptr<pool_registration> pins) {
  auto facts = facts_of(device);
  if (!facts)
    return facts.failure();
  auto events = compute_events::make(device);
  if (!events)
    return events.failure();
  if (!pins) {
    auto made = pool_registration::make(device);
    if (!made)
      return made.failure();
    pins = std::move(made).value();
  }
  auto out = cuda_seat{};
  out.device_ = device;
  out.name_ = describe(device, facts.value());
  out.numa_node_ = facts.value().numa_node;
  out.events_ = std::move(events).value();
  out.pins_ = std::move(pins);
  return out;
}

host_pool_config cuda_seat::pool_config(const cuda_options& opts,
                                        std::uint64_t host_bytes) const {
  return pool_config_of(opts, host_bytes, numa_node_, pins_);
}

result<std::unique_ptr<copy_engine>> cuda_seat::make_engine(
  const cuda_options& opts, wake_function wake,
  std::shared_ptr<host_pool_memory> pool,
  std::function<copy_fault(job_id, job_kind)> fault) const {
  auto out = engine_config_of(opts);
  out.wake = std::move(wake);
  out.device = device_;
  out.events = events_;
  if (pool->status().pinned)
    out.pool = pins_;
  out.keep = std::move(pool);
  out.fault = std::move(fault);
  return make_cuda_copy_engine(std::move(out));
}

} // namespace kvtide::gpu
