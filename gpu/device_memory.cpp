// SPDX-License-Identifier: Apache-2.0

#include "kvtide/gpu.hpp"

#include "gpu/cuda/device_work.hpp"
#include "gpu/host_memory.hpp"

#include <utility>

namespace kvtide::gpu {

namespace {

result<std::shared_ptr<std::byte>> allocate_host(std::uint64_t bytes) {
  auto mapped = host_memory::map(bytes);
  if (!mapped)
    return mapped.failure();
  auto owner = std::make_shared<host_memory>(std::move(mapped).value());
  auto* first = owner->data();
  return std::shared_ptr<std::byte>{std::move(owner), first};
}

} // namespace

struct device_memory::impl {
  std::shared_ptr<std::byte> first;
  std::uint64_t bytes = 0;
  memory_kind kind = memory_kind::host;
};

result<device_memory> device_memory::allocate(int device, std::uint64_t bytes) {
  if (bytes == 0)
    return error{ec::invalid_argument,
                 "device_memory::allocate: zero bytes were asked for, and at "
                 "least one must be"};
  const auto on_host = device == host_device;
  auto first
    = on_host ? allocate_host(bytes) : allocate_cuda_memory(device, bytes);
  if (!first)
    return first.failure();
  auto made = std::make_unique<impl>();
  made->first = std::move(first).value();
  made->bytes = bytes;
  made->kind = on_host ? memory_kind::host : memory_kind::device;
  return device_memory{std::move(made)};
}

device_memory::device_memory(std::unique_ptr<impl> ptr) noexcept
  : impl_(std::move(ptr)) {
  // nop
}

device_memory::device_memory(device_memory&&) noexcept = default;

device_memory& device_memory::operator=(device_memory&&) noexcept = default;

device_memory::~device_memory() = default;

std::byte* device_memory::data() const noexcept {
  return impl_->first.get();
}

std::uint64_t device_memory::bytes() const noexcept {
  return impl_->bytes;
}

memory_kind device_memory::kind() const noexcept {
  return impl_->kind;
}

} // namespace kvtide::gpu
