// SPDX-License-Identifier: Apache-2.0

#include "gpu/host_memory.hpp"

#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace kvtide::gpu {

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// Enough digits to see what is wrong, whatever the size.
std::string in_words(std::uint64_t bytes) {
  return std::to_string(bytes) + " bytes (" + std::to_string(bytes / mib)
       + " MiB)";
}

error refusal(std::uint64_t bytes, const std::string& why) {
  return {ec::out_of_memory, "cannot get " + in_words(bytes)
                               + " of host memory for the pool: " + why
                               + "; lower options::host_bytes (it counts per "
                                 "rank), or free memory on this machine"};
}

/// Makes the kernel find every page now.
/// @returns zero or an errno value.
int populate(std::byte* data, std::uint64_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (::madvise(data, bytes, MADV_POPULATE_WRITE) == 0)
    return 0;
  if (errno != EINVAL) // An older kernel does not know the advice.
    return errno;
#endif
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (std::uint64_t i = 0; i < bytes; i += page)
    *static_cast<volatile std::byte*>(data + i) = std::byte{0};
  return 0;
}

} // namespace

result<host_memory> host_memory::map(std::uint64_t bytes,
                                     const host_memory_options& opts) {
  if (bytes == 0)
    return host_memory{};
  const auto physical = physical_memory_bytes();
  const auto limit = opts.limit_bytes > 0 ? opts.limit_bytes : physical;
  if (bytes > limit)
    return refusal(bytes, "the machine has " + in_words(physical)
                            + (opts.limit_bytes > 0
                                 ? " and the limit is " + in_words(limit)
                                 : std::string{}));
  if (bytes > std::numeric_limits<std::size_t>::max())
    return refusal(bytes, "the address space is smaller");
  auto* raw = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED)
    return refusal(bytes, "the machine has " + in_words(physical)
                            + " and the system says \"" + std::strerror(errno)
                            + "\"");
  auto memory = host_memory{static_cast<std::byte*>(raw), bytes};
  // A child that wrote to the pool would make the kernel copy it, and a copy
  // engine must never meet such a copy. A kernel without the advice is no
  // reason not to start.
  (void)::madvise(raw, bytes, MADV_DONTFORK);
  if (opts.prefault) {
    if (const auto failure = populate(memory.data_, bytes); failure != 0)
      return refusal(bytes, "the machine has " + in_words(physical)
                              + " and touching the pages ended with \""
                              + std::strerror(failure) + "\"");
  }
  return memory;
}

host_memory::host_memory(host_memory&& other) noexcept
  : data_(std::exchange(other.data_, nullptr)),
    bytes_(std::exchange(other.bytes_, 0)) {
  // nop
}

host_memory& host_memory::operator=(host_memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

host_memory::~host_memory() {
  if (data_ != nullptr)
    ::munmap(data_, bytes_);
}

std::uint64_t physical_memory_bytes() noexcept {
  const auto pages = ::sysconf(_SC_PHYS_PAGES);
  const auto page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0)
    return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

} // namespace kvtide::gpu
