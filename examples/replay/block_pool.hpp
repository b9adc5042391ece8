// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace kvtide::replay {

/// The blocks of device memory: who uses them, what they hold, and in which
/// order free ones are handed out. A free block keeps its content, and can be
/// found by it, until it is handed out again.
class block_pool {
public:
  /// Where a block goes that nobody uses any more.
  enum class reuse : std::uint8_t {
    /// Behind all free blocks: least recently used ones first.
    last,
    /// Before all free blocks: reused at once.
    first,
  };

  /// Makes blocks 1 to `blocks`, all free and empty.
  explicit block_pool(std::uint32_t blocks);

  [[nodiscard]] std::size_t free_blocks() const noexcept {
    return free_count_;
  }

  [[nodiscard]] std::size_t size() const noexcept {
    return slots_.size() - 1;
  }

  /// Hands out the next free block, for one user; its content is forgotten.
  /// @pre `free_blocks() > 0`
  [[nodiscard]] block_id allocate();

  /// Adds a user, also to a free block.
  void retain(block_id block);

  /// Takes one user away.
  /// @pre the block has a user
  void release(block_id block, reuse order);

  [[nodiscard]] std::uint32_t users(block_id block) const noexcept {
    return slots_[block].users;
  }

  /// Lets others find a block by its content. Does nothing if the block has a
  /// key already, or another block has this one.
  /// @pre `key != 0`, and the block has a user
  void publish(block_id block, std::uint64_t key);

  /// @returns the block with this content, or `no_block`.
  [[nodiscard]] block_id find(std::uint64_t key) const;

  /// Takes the keys of all blocks away.
  void forget_contents();

private:
  struct slot {
    std::uint32_t users = 0;
    block_id previous = no_block;
    block_id next = no_block;
    /// Zero means that the block cannot be found.
    std::uint64_t key = 0;
  };

  void unlink(block_id block);
  void link_behind(block_id place, block_id block);

  // Slot 0 is both ends of the list of free blocks.
  std::vector<slot> slots_;
  std::size_t free_count_ = 0;
  std::unordered_map<std::uint64_t, block_id> by_key_;
};

} // namespace kvtide::replay
