// SPDX-License-Identifier: Apache-2.0

#include "bench/allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <malloc.h>
#include <new>

namespace {

std::atomic<std::size_t> count{0};
std::atomic<std::size_t> bytes{0};
std::atomic<std::size_t> live_bytes{0};

void* counted(void* memory, std::size_t size) {
  if (memory == nullptr)
    throw std::bad_alloc{};
  count.fetch_add(1, std::memory_order_relaxed);
  bytes.fetch_add(size, std::memory_order_relaxed);
  live_bytes.fetch_add(malloc_usable_size(memory), std::memory_order_relaxed);
  return memory;
}

void give_back(void* memory) noexcept {
  live_bytes.fetch_sub(malloc_usable_size(memory), std::memory_order_relaxed);
  std::free(memory); // NOLINT(cppcoreguidelines-no-malloc)
}

} // namespace

// The standard library's other forms end in these.

void* operator new(std::size_t size) {
  return counted(std::malloc(size),
                 size); // NOLINT(cppcoreguidelines-no-malloc)
}

void* operator new(std::size_t size, std::align_val_t align) {
  const auto step = static_cast<std::size_t>(align);
  const auto whole = (size + step - 1) / step * step;
  return counted(std::aligned_alloc(step, whole), size);
}

void operator delete(void* memory) noexcept {
  give_back(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  give_back(memory);
}

void operator delete(void* memory, std::align_val_t) noexcept {
  give_back(memory);
}

void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  give_back(memory);
}

namespace kvtide::bench {

allocations allocations_so_far() noexcept {
  return {count, bytes, live_bytes};
}

} // namespace kvtide::bench
