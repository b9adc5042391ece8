// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include <cstddef>
#include <cstdint>

namespace kvtide::gpu {

/// How host memory is asked for.
struct host_memory_options {
  /// Touches every page now, so that serving never waits for the kernel to
  /// find one. Takes about a quarter of a second per GiB.
  bool prefault = false;

  /// Upper limit of what may be asked for, in bytes; zero means the machine's
  /// physical memory.
  std::uint64_t limit_bytes = 0;
};

/// Owns the memory of a host pool: zeroed, page aligned, not inherited by
/// forked children (G5), returned to the system on destruction. The owner
/// keeps it until no copy can touch it any more.
class host_memory {
public:
  /// Maps `bytes` bytes; zero gives an empty object.
  /// @returns `ec::out_of_memory` if that is more than the limit or the system
  ///          refuses.
  [[nodiscard]] static result<host_memory>
  map(std::uint64_t bytes, const host_memory_options& opts = {});

  host_memory() = default;

  host_memory(host_memory&& other) noexcept;

  host_memory& operator=(host_memory&& other) noexcept;

  ~host_memory();

  /// Null if empty.
  [[nodiscard]] std::byte* data() const noexcept {
    return data_;
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return bytes_;
  }

private:
  host_memory(std::byte* data, std::uint64_t bytes) noexcept
    : data_(data), bytes_(bytes) {
    // nop
  }

  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// The machine's physical memory in bytes.
[[nodiscard]] std::uint64_t physical_memory_bytes() noexcept;

} // namespace kvtide::gpu
