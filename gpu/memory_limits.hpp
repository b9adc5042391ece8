// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the system says about memory before it is asked for any. Every
/// function reads files below `root`, which only tests set, and throws nothing.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kvtide::gpu {

/// Bytes of an ordinary page.
[[nodiscard]] std::uint64_t base_page_bytes() noexcept;

/// What the kernel believes it can hand out without swapping (MemAvailable), in
/// bytes. Nothing if it does not say.
[[nodiscard]] std::optional<std::uint64_t>
available_memory_bytes(const std::string& root = {});

/// The lowest memory limit, in bytes, of the control groups (version 1 or 2)
/// that this process is in. Nothing if none is limited.
[[nodiscard]] std::optional<std::uint64_t>
control_group_memory_limit(const std::string& root = {});

/// The huge pages that a mapping gets unless it names a size.
struct huge_page_facts {
  /// Zero if the kernel has none.
  std::uint64_t page_bytes = 0;

  /// Neither used nor promised to another mapping.
  std::uint64_t free_pages = 0;
};

[[nodiscard]] huge_page_facts huge_pages_here(const std::string& root = {});

/// RLIMIT_MEMLOCK in bytes. Nothing if it is unlimited.
[[nodiscard]] std::optional<std::uint64_t> memory_lock_limit() noexcept;

/// "1048577 bytes (1 MiB)": all digits, to see what is wrong, and the size.
[[nodiscard]] std::string in_words(std::uint64_t bytes);

} // namespace kvtide::gpu
