// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "gpu/host_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace kvtide::gpu {

/// New pages, or why there are none. Owned by whoever has it.
struct page_mapping {
  /// Null if the system refused.
  std::byte* data = nullptr;

  /// Whole pages.
  std::uint64_t bytes = 0;

  std::uint64_t page_bytes = 0;

  /// Half a sentence that says what was refused and what to change.
  std::string failure;
};

/// Maps zeroed pages of the kind that `opts` asks for, on its node, and
/// reserves and touches them if it says so.
/// @param bytes at least 1, and less than half of the address space.
/// @param facts gets the node and the notes.
[[nodiscard]] page_mapping map_pages(std::uint64_t bytes,
                                     const host_memory_options& opts,
                                     host_memory_facts& facts);

/// The same of a file with a name, whose content stays. The memory behind it is
/// always reserved; huge pages are its file system's to choose.
/// @param place its offset is that of a page, and the file is as long as
/// needed.
[[nodiscard]] page_mapping map_file_pages(const file_place& place,
                                          std::uint64_t bytes,
                                          const host_memory_options& opts,
                                          host_memory_facts& facts);

} // namespace kvtide::gpu
