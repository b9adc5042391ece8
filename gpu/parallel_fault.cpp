// SPDX-License-Identifier: Apache-2.0

#include "gpu/parallel_fault.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <vector>

namespace kvtide::gpu {

int fault_pages(std::byte* data, std::uint64_t bytes,
                std::uint64_t page_bytes) noexcept {
#ifdef MADV_POPULATE_WRITE
  if (::madvise(data, bytes, MADV_POPULATE_WRITE) == 0)
    return 0;
  if (errno != EINVAL) // An older kernel does not know the advice.
    return errno;
#endif
  for (std::uint64_t i = 0; i < bytes; i += page_bytes) {
    volatile auto* first = data + i;
    *first = *first; // Memory with a name has content.
  }
  return 0;
}

bool faults_return_errors() noexcept {
#ifdef MADV_POPULATE_WRITE
  // Of no bytes; only an unknown advice is an error.
  return ::madvise(nullptr, 0, MADV_POPULATE_WRITE) == 0;
#else
  return false;
#endif
}

int fault_in_parallel(std::byte* data, std::uint64_t bytes,
                      std::uint64_t page_bytes, std::uint32_t threads,
                      const fault_function& fault) {
  const auto shares = bytes / fault_share + (bytes % fault_share != 0 ? 1 : 0);
  if (threads == 0)
    threads = std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
  std::atomic<std::uint64_t> next{0};
  std::atomic<int> failure{0};
  const auto work = [&] {
    while (failure.load() == 0) {
      const auto share = next.fetch_add(1);
      if (share >= shares)
        return;
      const auto first = share * fault_share;
      const auto length = std::min(fault_share, bytes - first);
      if (const auto code = fault(data + first, length, page_bytes); code != 0)
        // Only the first one is kept.
        if (auto none = 0; !failure.compare_exchange_strong(none, code))
          return;
    }
  };
  std::vector<std::thread> helpers;
  try {
    for (std::uint64_t i = 1; i < threads && i < shares; ++i)
      helpers.emplace_back(work);
  } catch (const std::exception&) {
    // A limit on threads makes it slower, not wrong.
  }
  work();
  for (auto& helper : helpers)
    helper.join();
  return failure.load();
}

} // namespace kvtide::gpu
