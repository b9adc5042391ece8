// SPDX-License-Identifier: Apache-2.0

/// @file
/// How memory comes from the node that a GPU is attached to.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kvtide::gpu {

/// A machine's nodes of memory. Tests make their own.
struct numa_system {
  /// Those that have memory, ascending. One or none means that there is no
  /// choice.
  std::vector<int> nodes;

  /// Free bytes of a node in pages of that size; nothing if not known. Memory
  /// that caches files is not free: the kernel goes to another node before it
  /// drops that.
  std::function<std::optional<std::uint64_t>(int node,
                                             std::uint64_t page_bytes)>
    free_bytes;

  /// Makes pages of a range come from a node while it has any.
  /// @returns zero or an errno value; `ENOSYS` if this build cannot.
  std::function<int(std::byte* data, std::uint64_t bytes, int node)> prefer;
};

/// The machine that this process runs on.
/// @param root where /sys is; only tests set it.
[[nodiscard]] numa_system this_numa_system(const std::string& root = {});

/// What came of a wish for a node.
struct node_choice {
  /// Nothing if the machine has no choice or refused.
  std::optional<int> node;

  /// A sentence about what is not as wished and what to do; may be empty.
  std::string note;
};

/// Makes pages that are found from now on come from `node`. Memory is the
/// node's before the first page is, or not at all. On a machine with one node
/// nothing is done. A node that runs out is no error: the rest comes from other
/// nodes, which is slower and works, while a strict binding would let the
/// kernel end a process of its choice.
/// @param data starts on a page.
[[nodiscard]] node_choice choose_node(std::byte* data, std::uint64_t bytes,
                                      std::uint64_t page_bytes, int node,
                                      const numa_system& machine);

} // namespace kvtide::gpu
