// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace serve {

/// Names what a block holds: the tokens up to its end, and the group.
struct block_key {
  kvtide::prefix_hash prefix;
  kvtide::group_id group = 0;

  friend bool operator==(const block_key& x, const block_key& y) noexcept {
    return x.group == y.group && x.prefix == y.prefix;
  }
};

/// The blocks of the device: who uses them, and what they hold. A block that
/// nobody uses keeps its content, and is found by it, until it is handed out
/// again, least recently used ones first. That is the device's prefix cache.
class block_pool {
public:
  /// Makes blocks 1 to `blocks`, all free and empty.
  explicit block_pool(std::uint32_t blocks);

  [[nodiscard]] std::size_t size() const noexcept {
    return slots_.size() - 1;
  }

  [[nodiscard]] std::size_t free_blocks() const noexcept {
    return free_;
  }

  /// Hands out a free block, for one user. Its content is forgotten.
  /// @pre `free_blocks() > 0`
  [[nodiscard]] kvtide::block_id allocate();

  /// Adds a user, also to a free block.
  void retain(kvtide::block_id block);

  /// Takes a user away.
  /// @pre the block has one
  void release(kvtide::block_id block);

  /// Lets others find a block by its content. No effect if the block has a key
  /// already, or if another block has this one.
  /// @pre the block has a user
  void publish(kvtide::block_id block, const block_key& key);

  /// @returns the block with this content, or `no_block`.
  [[nodiscard]] kvtide::block_id find(const block_key& key) const;

private:
  struct slot {
    std::uint32_t users = 0;
    kvtide::block_id before = kvtide::no_block;
    kvtide::block_id behind = kvtide::no_block;
    block_key key; // An empty prefix: cannot be found.
  };

  struct hash {
    std::size_t operator()(const block_key& key) const noexcept;
  };

  void unlink(kvtide::block_id block);
  void link_behind(kvtide::block_id place, kvtide::block_id block);

  /// Slot 0 is both ends of the list of free blocks.
  std::vector<slot> slots_;
  std::size_t free_ = 0;
  std::unordered_map<block_key, kvtide::block_id, hash> by_key_;
};

} // namespace serve
