// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a build without the CUDA toolkit says.

#include "gpu/cuda/compute_events.hpp"
#include "gpu/cuda/cuda_copy_engine.hpp"
#include "gpu/cuda/device_work.hpp"
#include "gpu/cuda/devices.hpp"
#include "gpu/cuda/pool_registration.hpp"

#include <utility>

namespace kvtide::gpu {

namespace {

error no_cuda() {
  return {ec::unsupported,
          "this build has no CUDA: build with KVTIDE_WITH_CUDA=ON, or use the "
          "host device"};
}

} // namespace

// None of these objects is ever made, so their members are never called.

struct compute_events::impl {};

result<std::shared_ptr<compute_events>> compute_events::make(int,
                                                             std::uint32_t) {
  return no_cuda();
}

compute_events::compute_events(std::unique_ptr<impl> ptr) noexcept
  : impl_(std::move(ptr)) {
  // nop
}

compute_events::~compute_events() = default;

result<std::uint64_t> compute_events::record(std::uint64_t) {
  return no_cuda();
}

error compute_events::check_not_capturing(
  const std::vector<std::uint64_t>&) const {
  return no_cuda();
}

bool compute_events::knows(std::uint64_t) const {
  return false;
}

event_state compute_events::state(std::uint64_t) const {
  return event_state::unknown;
}

error compute_events::wait(stream_handle, std::uint64_t) const {
  return no_cuda();
}

void compute_events::abandon() {
  // nop
}

struct pool_registration::impl {};

result<std::shared_ptr<pool_registration>> pool_registration::make(int) {
  return no_cuda();
}

pool_registration::pool_registration(std::unique_ptr<impl> ptr) noexcept
  : impl_(std::move(ptr)) {
  // nop
}

pool_registration::~pool_registration() = default;

error pool_registration::add(std::byte*, std::uint64_t) {
  return no_cuda();
}

void pool_registration::remove(std::byte*) noexcept {
  // nop
}

std::byte* pool_registration::device_address(const void*, std::uint64_t) const {
  return nullptr;
}

void pool_registration::abandon() {
  // nop
}

result<int> count_devices() {
  return no_cuda();
}

result<device_facts> facts_of(int) {
  return no_cuda();
}

error check_device(int) {
  return no_cuda();
}

error check_on_device(const kv_memory&) {
  return no_cuda();
}

result<std::shared_ptr<std::byte>> allocate_cuda_memory(int, std::uint64_t) {
  return no_cuda();
}

result<std::unique_ptr<work_queue>> make_cuda_queue(int) {
  return no_cuda();
}

result<std::unique_ptr<copy_engine>> make_cuda_copy_engine(cuda_engine_config) {
  return no_cuda();
}

} // namespace kvtide::gpu
