// SPDX-License-Identifier: Apache-2.0

#include "gpu/host_memory.hpp"

#include "gpu/memory_limits.hpp"
#include "gpu/page_mapping.hpp"

#include <limits>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace kvtide::gpu {

namespace {

error refusal(std::uint64_t bytes, const std::string& why) {
  return {ec::out_of_memory, "cannot get " + in_words(bytes)
                               + " of host memory for the pool: " + why
                               + "; lower host_bytes (it counts per "
                                 "rank), or free memory on this machine"};
}

} // namespace

result<host_memory> host_memory::map(std::uint64_t bytes,
                                     const host_memory_options& opts) {
  return map(bytes, opts, {});
}

result<host_memory> host_memory::map(std::uint64_t bytes,
                                     const host_memory_options& opts,
                                     const file_place& place) {
  if (bytes == 0)
    return host_memory{};
  const auto physical = physical_memory_bytes();
  const auto limit = opts.limit_bytes > 0 ? opts.limit_bytes : physical;
  if (bytes > limit)
    return refusal(bytes, "the machine has " + in_words(physical)
                            + (opts.limit_bytes > 0
                                 ? " and the limit is " + in_words(limit)
                                 : std::string{}));
  // Half of all addresses is more than any system has, and rounds up safely.
  if (bytes > std::numeric_limits<std::size_t>::max() / 2)
    return refusal(bytes, "the address space is smaller");
  const auto has_name = place.file >= 0;
  host_memory_facts facts;
  auto made = has_name ? map_file_pages(place, bytes, opts, facts)
                       : map_pages(bytes, opts, facts);
  if (made.data == nullptr)
    return refusal(bytes, "the machine has " + in_words(physical) + " and "
                            + made.failure);
  facts.bytes = bytes;
  facts.mapped_bytes = made.bytes;
  facts.page_bytes = made.page_bytes;
  facts.reserved = has_name || opts.reserve || opts.prefault
                || opts.huge_pages != huge_page_use::off;
  return host_memory{made.data, std::move(facts)};
}

host_memory::host_memory(std::byte* data, host_memory_facts facts) noexcept
  : data_(data), facts_(std::move(facts)) {
  // nop
}

host_memory::host_memory(host_memory&& other) noexcept
  : data_(std::exchange(other.data_, nullptr)),
    facts_(std::exchange(other.facts_, {})) {
  // nop
}

host_memory& host_memory::operator=(host_memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(facts_, other.facts_);
  return *this;
}

host_memory::~host_memory() {
  if (data_ != nullptr)
    ::munmap(data_, facts_.mapped_bytes);
}

std::uint64_t physical_memory_bytes() noexcept {
  const auto pages = ::sysconf(_SC_PHYS_PAGES);
  const auto page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0)
    return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

} // namespace kvtide::gpu
