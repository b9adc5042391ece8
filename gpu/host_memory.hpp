// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/cuda_options.hpp"
#include "kvtide/result.hpp"

#include "gpu/numa_node.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvtide::gpu {

/// How host memory is asked for. The defaults cost next to nothing at start;
/// memory that a device copies by itself wants `reserve` and `prefault`.
struct host_memory_options {
  /// Touches every page now, so that serving never waits for the kernel to
  /// find one. Takes about a third of a second per GiB and thread.
  bool prefault = false;

  /// Upper limit of what may be asked for, in bytes; zero means the machine's
  /// physical memory.
  std::uint64_t limit_bytes = 0;

  /// Gets the memory behind the addresses now (G5), so that a lack is an error
  /// here and not the end of the process while serving. Takes about a quarter
  /// of a second per GiB; nothing beside `prefault`, whose threads do it where
  /// the kernel can (Linux 5.14).
  bool reserve = false;

  /// MAP_HUGETLB; other than `off` implies `reserve`.
  huge_page_use huge_pages = huge_page_use::off;

  /// The node that pages shall come from, on machines that have several.
  std::optional<int> numa_node = std::nullopt;

  /// Threads that touch pages, this one included; zero means one per core, at
  /// most 8.
  std::uint32_t prefault_threads = 0;

  /// For tests: a machine other than this one. Read before `map` returns.
  const numa_system* machine = nullptr;
};

/// Where memory lies that has a name.
struct file_place {
  int file = -1;
  std::uint64_t offset = 0;
  /// For messages.
  std::string folder;
};

/// What was asked for and what came of it, for the log.
struct host_memory_facts {
  /// Usable: what was asked for.
  std::uint64_t bytes = 0;

  /// Taken from the system: `bytes`, rounded up to whole pages.
  std::uint64_t mapped_bytes = 0;

  /// Of one page; zero if the memory is empty.
  std::uint64_t page_bytes = 0;

  /// The memory behind the addresses is there.
  bool reserved = false;

  /// Nothing unless a node was chosen: not asked for, only one, or refused.
  std::optional<int> numa_node;

  /// What is not as asked for: a sentence each, with what to do about it.
  std::vector<std::string> notes;
};

/// Owns the memory of a host pool: zeroed if it has no name, page aligned, not
/// inherited by forked children (G5), returned to the system on destruction.
/// The owner keeps it until no copy can touch it any more.
class host_memory {
public:
  /// Maps `bytes` bytes; zero gives an empty object. What is only limited is in
  /// `facts().notes`.
  /// @returns `ec::out_of_memory` if that is more than a limit or the system
  ///          refuses.
  [[nodiscard]] static result<host_memory>
  map(std::uint64_t bytes, const host_memory_options& opts = {});

  /// Maps `bytes` bytes of a file, which is closed by whoever opened it. What
  /// lies in it stays, and stays when the mapping is gone.
  /// @returns as the other one
  [[nodiscard]] static result<host_memory> map(std::uint64_t bytes,
                                               const host_memory_options& opts,
                                               const file_place& place);

  host_memory() = default;

  host_memory(host_memory&& other) noexcept;

  host_memory& operator=(host_memory&& other) noexcept;

  ~host_memory();

  /// Null if empty.
  [[nodiscard]] std::byte* data() const noexcept {
    return data_;
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return facts_.bytes;
  }

  [[nodiscard]] const host_memory_facts& facts() const noexcept {
    return facts_;
  }

private:
  host_memory(std::byte* data, host_memory_facts facts) noexcept;

  std::byte* data_ = nullptr;
  host_memory_facts facts_;
};

/// The machine's physical memory in bytes.
[[nodiscard]] std::uint64_t physical_memory_bytes() noexcept;

} // namespace kvtide::gpu
