// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"
#include "kvtide/kv_memory.hpp"
#include "kvtide/result.hpp"

#include "gpu/copy_engine.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvtide::gpu {

/// Whose pointers an engine can copy.
enum class memory_domain : std::uint8_t {
  /// Plain host memory only.
  host_only,
  /// Every `memory_kind`.
  any,
};

/// A host pool: `slots` places of `geometry::slot_bytes()` bytes each.
struct slot_pool {
  std::byte* base = nullptr;
  std::uint32_t slots = 0;
};

/// Where the bytes of a block lie on the GPU and in a slot. Turns rows into
/// fragments, and lets nothing out that is not inside the registered memory.
/// Immutable; safe to read from any thread.
///
/// A slot is block-first: block `j` of the chunk at `j * block_bytes(group)`,
/// and in it the pieces of the group's references in registration order. Its
/// last bytes are unused by groups whose blocks are smaller than others'.
class geometry {
public:
  [[nodiscard]] std::uint32_t groups() const noexcept {
    return static_cast<std::uint32_t>(groups_.size());
  }

  [[nodiscard]] std::uint32_t blocks_per_chunk() const noexcept {
    return blocks_per_chunk_;
  }

  /// Bytes of one block of a group, on the host.
  /// @pre `group < groups()`
  [[nodiscard]] std::uint64_t block_bytes(group_id group) const noexcept {
    return groups_[group].block_bytes;
  }

  /// Block ids of a group are below this: the fewest blocks that any of its
  /// tensors holds.
  /// @pre `group < groups()`
  [[nodiscard]] std::uint32_t blocks(group_id group) const noexcept {
    return groups_[group].blocks;
  }

  /// Bytes of one slot: the largest chunk of any group, rounded up to 64.
  [[nodiscard]] std::uint64_t slot_bytes() const noexcept {
    return slot_bytes_;
  }

  /// How many slots fit into a pool of that many bytes. Slot ids are
  /// 32 bits wide, so this stops at 2^32 - 1.
  [[nodiscard]] std::uint32_t slots_in(std::uint64_t host_bytes) const noexcept;

  /// Appends the fragments of one row. Blocks that are `no_block` are skipped;
  /// pieces that are adjacent on both sides are merged, within the row and the
  /// tensor: two allocations may touch, but no copy spans both (G5).
  /// @param row_index its index in `job::rows`, for `fragment::row`.
  /// @returns `ec::none`, or `ec::invalid_argument` with a sentence that names
  ///          the ids if anything lies outside the registered memory or the
  ///          pool; `out` is then unchanged.
  [[nodiscard]] error append_fragments(job_kind kind, const job_row& row,
                                       std::uint32_t row_index, group_id group,
                                       const slot_pool& pool,
                                       std::vector<fragment>& out) const;

private:
  friend result<geometry> make_geometry(const kv_memory&, std::uint32_t,
                                        std::uint32_t, memory_domain);

  /// A reference, ready for use: piece of block `b` at `base + b * stride`.
  struct piece {
    std::byte* base = nullptr;
    std::uint64_t stride = 0;
    std::uint64_t bytes = 0;
    std::uint32_t tensor = 0;
  };

  struct group_pieces {
    std::vector<piece> pieces;
    std::uint64_t block_bytes = 0;
    std::uint32_t blocks = 0;
  };

  std::vector<group_pieces> groups_;
  std::uint32_t blocks_per_chunk_ = 0;
  std::uint64_t slot_bytes_ = 0;
};

/// Checks everything that a rank says about its memory.
/// @param groups number of configured groups, at least 1.
/// @param blocks_per_chunk at least 1.
/// @returns `ec::invalid_argument` with a sentence that names the tensor or
///          reference, or `ec::unsupported` if `domain` does not cover a
///          tensor's memory.
[[nodiscard]] result<geometry> make_geometry(const kv_memory& memory,
                                             std::uint32_t groups,
                                             std::uint32_t blocks_per_chunk,
                                             memory_domain domain);

} // namespace kvtide::gpu
