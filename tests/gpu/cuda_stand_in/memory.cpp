// SPDX-License-Identifier: Apache-2.0

/// @file
/// Memory that devices can use: allocated here, or the program's and
/// registered. Device memory lies on the heap, where the address sanitizer
/// guards it, and is known to the program by addresses that a host cannot
/// touch.

#include "tests/gpu/cuda_stand_in/machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace kvtide::stand_in {
namespace {

constexpr std::size_t page = 4096;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page - 1) / page * page;
}

std::uintptr_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

/// Bytes that no program would write, so that reading them is noticed.
std::byte* allocate(std::size_t bytes) {
  void* made = nullptr;
  if (::posix_memalign(&made, page, bytes) != 0)
    return nullptr;
  std::memset(made, 0xdb, bytes);
  return static_cast<std::byte*>(made);
}

const region_ptr* find_in(const std::map<std::uintptr_t, region_ptr>& regions,
                          std::uintptr_t first, std::size_t bytes,
                          std::byte* region::*where) {
  auto next = regions.upper_bound(first);
  if (next != regions.begin()) {
    const auto& before = std::prev(next)->second;
    if (first < number(before.get()->*where) + before->bytes)
      return &before;
  }
  if (next != regions.end() && next->first < first + bytes)
    return &next->second;
  return nullptr;
}

place place_in(const region_ptr& owner, std::uintptr_t first, std::size_t bytes,
               std::byte* region::*where) {
  const auto begin = number(owner.get()->*where);
  if (first < begin || first + bytes > begin + owner->bytes)
    return {nullptr, nullptr, true};
  return {owner, owner->host + (first - begin), false};
}

/// Pages are locked, so two registrations collide if they share a page.
bool shares_a_page(const machine& m, const void* address, std::size_t bytes) {
  const auto first = number(address) / page;
  const auto last = (number(address) + bytes - 1) / page;
  return std::any_of(m.by_host.begin(), m.by_host.end(), [&](const auto& x) {
    const auto begin = x.first / page;
    const auto end = (x.first + x.second->bytes - 1) / page;
    return begin <= last && first <= end;
  });
}

/// What giving memory back has in common: the pointer must be the one that was
/// given, and no operation may be using it.
cudaError_t give_back(machine& m, void* pointer, memory_kind kind,
                      cudaError_t unknown) {
  auto& regions = kind == memory_kind::device ? m.by_address : m.by_host;
  const auto found = regions.find(number(pointer));
  if (found == regions.end() || found->second->kind != kind)
    return m.refuse(unknown, "not the start of such memory");
  const auto owned = found->second;
  if (const auto code = m.context_of(owned->device); code != cudaSuccess)
    return code;
  if (owned->uses > 0) {
    m.refuse(cudaSuccess, "operations that use the memory are pending");
    if (const auto code = m.wait_until_unused(*owned, owned->device);
        code != cudaSuccess)
      return code;
  }
  m.remove(owned);
  return cudaSuccess;
}

} // namespace

place machine::find(const void* address, std::size_t bytes) const {
  const auto first = number(address);
  if (const auto* owner = find_in(by_address, first, bytes, &region::address))
    return place_in(*owner, first, bytes, &region::address);
  if (const auto* owner = find_in(by_host, first, bytes, &region::host))
    return place_in(*owner, first, bytes, &region::host);
  auto* host = static_cast<std::byte*>(const_cast<void*>(address));
  return {nullptr, host, false};
}

void machine::add(region_ptr added) {
  added->address = added->host;
  const bool elsewhere
    = added->kind == memory_kind::device
      ? !wanted.host_can_use_device_addresses
      : added->kind == memory_kind::registered_host
          && wanted.registered_memory_has_other_device_address;
  if (elsewhere) {
    // One page more, so that two of them never touch.
    const auto bytes = whole_pages(added->bytes) + page;
    auto* made = ::mmap(nullptr, bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED)
      std::abort();
    reserved.emplace_back(made, bytes);
    added->address = static_cast<std::byte*>(made);
    if (added->kind == memory_kind::registered_host)
      added->address += number(added->host) % page;
  }
  by_address[number(added->address)] = added;
  if (added->kind != memory_kind::device)
    by_host[number(added->host)] = added;
  if (added->kind == memory_kind::device)
    allocated_bytes[static_cast<std::size_t>(added->device)] += added->bytes;
  if (added->kind == memory_kind::registered_host)
    registered_bytes += added->bytes;
}

void machine::remove(const region_ptr& removed) {
  by_address.erase(number(removed->address));
  if (removed->kind != memory_kind::device)
    by_host.erase(number(removed->host));
  if (removed->kind == memory_kind::device)
    allocated_bytes[static_cast<std::size_t>(removed->device)]
      -= removed->bytes;
  if (removed->kind == memory_kind::registered_host)
    registered_bytes -= removed->bytes;
  else
    std::free(removed->host);
}

} // namespace kvtide::stand_in

using namespace kvtide::stand_in;

cudaError_t cudaMalloc(void** devPtr, size_t size) {
  return call("cudaMalloc", needs::context, [&](machine& m) {
    if (const auto code = m.check_unsafe(); code != cudaSuccess)
      return code;
    if (devPtr == nullptr)
      return m.refuse(cudaErrorInvalidValue, "nowhere to put the pointer");
    *devPtr = nullptr;
    const auto device = m.me().device;
    const auto used = m.allocated_bytes[static_cast<std::size_t>(device)];
    if (size > m.wanted.device_memory - used)
      return cudaErrorMemoryAllocation;
    if (size == 0)
      return cudaSuccess;
    auto* host = allocate(size);
    if (host == nullptr)
      return cudaErrorMemoryAllocation;
    auto made = std::make_shared<region>(
      region{memory_kind::device, device, host, nullptr, size});
    m.add(made);
    *devPtr = made->address;
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void* devPtr) {
  return call("cudaFree", needs::context, [&](machine& m) {
    if (const auto code = m.check_unsafe(); code != cudaSuccess)
      return code;
    if (devPtr == nullptr)
      return cudaSuccess;
    return give_back(m, devPtr, memory_kind::device, cudaErrorInvalidValue);
  });
}

cudaError_t cudaHostAlloc(void** pHost, size_t size, unsigned int flags) {
  return call("cudaHostAlloc", needs::context, [&](machine& m) {
    if (const auto code = m.check_unsafe(); code != cudaSuccess)
      return code;
    if (pHost == nullptr || flags > 7)
      return m.refuse(cudaErrorInvalidValue, "no pointer, or unknown flags");
    *pHost = nullptr;
    if (size == 0)
      return cudaSuccess;
    auto* host = allocate(whole_pages(size));
    if (host == nullptr)
      return cudaErrorMemoryAllocation;
    m.add(std::make_shared<region>(
      region{memory_kind::allocated_host, m.me().device, host, nullptr, size}));
    *pHost = host;
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* ptr) {
  return call("cudaFreeHost", needs::context, [&](machine& m) {
    if (const auto code = m.check_unsafe(); code != cudaSuccess)
      return code;
    if (ptr == nullptr)
      return cudaSuccess;
    return give_back(m, ptr, memory_kind::allocated_host,
                     cudaErrorInvalidValue);
  });
}

cudaError_t cudaHostRegister(void* ptr, size_t size, unsigned int flags) {
  return call("cudaHostRegister", needs::context, [&](machine& m) {
    if (const auto code = m.check_unsafe(); code != cudaSuccess)
      return code;
    if (ptr == nullptr || size == 0 || flags > 15)
      return m.refuse(cudaErrorInvalidValue, "no memory, or unknown flags");
    if (flags & (cudaHostRegisterIoMemory | cudaHostRegisterReadOnly))
      return cudaErrorNotSupported;
    if (shares_a_page(m, ptr, size))
      return m.refuse(cudaErrorHostMemoryAlreadyRegistered,
                      "shares a page with memory that is registered");
    if (const auto at = m.find(ptr, size); at.owner || at.crosses_border)
      return m.refuse(cudaErrorInvalidValue, "not memory of the host");
    if (size > m.wanted.largest_registration
        || size > m.wanted.registration_limit - m.registered_bytes)
      return cudaErrorMemoryAllocation;
    m.add(std::make_shared<region>(
      region{memory_kind::registered_host, m.me().device,
             static_cast<std::byte*>(ptr), nullptr, size}));
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* ptr) {
  return call("cudaHostUnregister", needs::context, [&](machine& m) {
    if (const auto code = m.check_unsafe(); code != cudaSuccess)
      return code;
    return give_back(m, ptr, memory_kind::registered_host,
                     cudaErrorHostMemoryNotRegistered);
  });
}

cudaError_t cudaHostGetDevicePointer(void** pDevice, void* pHost,
                                     unsigned int flags) {
  return call("cudaHostGetDevicePointer", needs::context, [&](machine& m) {
    if (pDevice == nullptr || flags != 0)
      return m.refuse(cudaErrorInvalidValue, "no pointer, or flags");
    const auto* owner = find_in(m.by_host, number(pHost), 1, &region::host);
    if (owner == nullptr)
      return m.refuse(cudaErrorInvalidValue, "not registered memory");
    const auto offset = number(pHost) - number((*owner)->host);
    *pDevice = (*owner)->address + offset;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                     const void* ptr) {
  return call("cudaPointerGetAttributes", needs::context, [&](machine& m) {
    if (attributes == nullptr || ptr == nullptr)
      return m.refuse(cudaErrorInvalidValue, "no pointer");
    *attributes = {};
    const auto at = m.find(ptr, 1);
    if (at.owner == nullptr) {
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = cudaInvalidDeviceId;
      attributes->hostPointer = const_cast<void*>(ptr);
      return cudaSuccess;
    }
    const bool on_device = at.owner->kind == memory_kind::device;
    attributes->type = on_device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
    attributes->device = at.owner->device;
    attributes->devicePointer = at.owner->address + (at.host - at.owner->host);
    attributes->hostPointer = on_device ? nullptr : at.host;
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return call("cudaMemGetInfo", needs::context, [&](machine& m) {
    if (free == nullptr || total == nullptr)
      return m.refuse(cudaErrorInvalidValue, "nowhere to put the sizes");
    *total = m.wanted.device_memory;
    *free = m.wanted.device_memory
          - m.allocated_bytes[static_cast<std::size_t>(m.me().device)];
    return cudaSuccess;
  });
}
