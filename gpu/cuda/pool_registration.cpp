// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/pool_registration.hpp"

#include "gpu/cuda/device_scope.hpp"
#include "gpu/cuda/devices.hpp"
#include "gpu/cuda/pinned_buffer.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace kvtide::gpu {

struct pool_registration::impl {
  struct piece {
    std::uint64_t bytes = 0;
    std::byte* on_device = nullptr;
  };

  int device = 0;
  mutable std::mutex mutex;
  /// By their first byte.
  std::map<const std::byte*, piece> pieces;
  bool abandoned = false;
};

result<std::shared_ptr<pool_registration>> pool_registration::make(int device) {
  if (auto failed = check_device(device); failed.code != ec::none)
    return failed;
  auto made = std::make_unique<impl>();
  made->device = device;
  return std::shared_ptr<pool_registration>{
    new pool_registration{std::move(made)}};
}

pool_registration::pool_registration(std::unique_ptr<impl> ptr) noexcept
  : impl_(std::move(ptr)) {
  // nop
}

pool_registration::~pool_registration() {
  if (impl_->abandoned)
    return;
  const device_scope scope{impl_->device};
  for (const auto& [first, piece] : impl_->pieces)
    ignore(::cudaHostUnregister(const_cast<std::byte*>(first)));
}

error pool_registration::add(std::byte* first, std::uint64_t bytes) {
  const device_scope scope{impl_->device};
  if (auto failed = check(
        "cudaHostRegister",
        ::cudaHostRegister(first, bytes,
                           cudaHostRegisterPortable | cudaHostRegisterMapped));
      failed.code != ec::none)
    return failed;
  auto there = device_address_of(first);
  if (!there) {
    ignore(::cudaHostUnregister(first));
    return there.failure();
  }
  const std::lock_guard lock{impl_->mutex};
  impl_->pieces[first] = {bytes, static_cast<std::byte*>(there.value())};
  return {};
}

void pool_registration::remove(std::byte* first) noexcept {
  {
    const std::lock_guard lock{impl_->mutex};
    if (impl_->pieces.erase(first) == 0 || impl_->abandoned)
      return;
  }
  const device_scope scope{impl_->device};
  ignore(::cudaHostUnregister(first));
}

std::byte* pool_registration::device_address(const void* first,
                                             std::uint64_t bytes) const {
  const auto* at = static_cast<const std::byte*>(first);
  const std::lock_guard lock{impl_->mutex};
  auto found = impl_->pieces.upper_bound(at);
  if (found == impl_->pieces.begin())
    return nullptr;
  --found;
  const auto offset = static_cast<std::uint64_t>(at - found->first);
  const auto& piece = found->second;
  if (offset > piece.bytes || bytes > piece.bytes - offset)
    return nullptr;
  return piece.on_device + offset;
}

void pool_registration::abandon() {
  const std::lock_guard lock{impl_->mutex};
  impl_->abandoned = true;
}

} // namespace kvtide::gpu
