// SPDX-License-Identifier: Apache-2.0

#include "actors/cuda_seat.hpp"

#include "gpu/cuda/devices.hpp"

#include <utility>

namespace kvtide {

namespace {

constexpr std::uint32_t most_kernel_blocks = 1'024;
constexpr std::uint32_t most_streams = 16;
constexpr std::uint32_t most_prefault_threads = 256;

gpu::huge_page_use pages_of(huge_page_use pages) {
  switch (pages) {
    case huge_page_use::off:
      break;
    case huge_page_use::if_available:
      return gpu::huge_page_use::if_available;
    case huge_page_use::required:
      return gpu::huge_page_use::required;
  }
  return gpu::huge_page_use::off;
}

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

error fault_of(const cuda_options& opts) {
  auto out = error{ec::invalid_options, {}};
  if (opts.kernel_blocks < 1 || opts.kernel_blocks > most_kernel_blocks)
    out.text = "cuda.kernel_blocks is " + std::to_string(opts.kernel_blocks)
             + "; it must be 1 to " + std::to_string(most_kernel_blocks) + ".";
  else if (opts.streams_per_direction < 1
           || opts.streams_per_direction > most_streams)
    out.text = "cuda.streams_per_direction is "
             + std::to_string(opts.streams_per_direction) + "; it must be 1 to "
             + std::to_string(most_streams) + ".";
  else if (opts.bytes_in_flight != 0 && opts.bytes_in_flight < opts.slice_bytes)
    out.text = "cuda.bytes_in_flight is " + std::to_string(opts.bytes_in_flight)
             + "; it must be 0 (two slices) or at least slice_bytes, which is "
             + std::to_string(opts.slice_bytes) + ".";
  else if (opts.prefault_threads > most_prefault_threads)
    out.text = "cuda.prefault_threads is "
             + std::to_string(opts.prefault_threads) + "; it must be at most "
             + std::to_string(most_prefault_threads)
             + ", or 0 for one per core.";
  else
    out.code = ec::none;
  return out;
}

gpu::cuda_engine_config engine_config_of(const cuda_options& opts) {
  auto out = gpu::cuda_engine_config{};
  out.path = opts.path;
  out.kernel_below = opts.kernel_below;
  out.kernel_blocks = opts.kernel_blocks;
  out.slice_bytes = opts.slice_bytes;
  out.bytes_in_flight = opts.bytes_in_flight;
  out.streams_per_direction = opts.streams_per_direction;
  out.fences = opts.fences;
  out.calibration_file = opts.calibration_file;
  return out;
}

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
  auto out = gpu::host_pool_config{};
  out.host_bytes = host_bytes;
  out.memory.reserve = true;
  out.memory.prefault = true;
  out.memory.prefault_threads = opts.prefault_threads;
  out.memory.huge_pages = pages_of(opts.huge_pages);
  if (opts.numa_binding)
    out.memory.numa_node = numa_node_;
  out.registrar = pins_;
  out.allow_pageable = opts.allow_pageable;
  return out;
}

result<std::unique_ptr<gpu::copy_engine>>
cuda_seat::make_engine(const cuda_options& opts, gpu::wake_function wake,
                       bool pinned) const {
  auto out = engine_config_of(opts);
  out.wake = std::move(wake);
  out.device = device_;
  out.events = events_;
  if (pinned)
    out.pool = pins_;
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
