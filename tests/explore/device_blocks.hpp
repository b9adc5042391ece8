// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "core/layout.hpp"
#include "tests/explore/findings.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

namespace kvtide::explore {

/// The blocks of one request, by group; `no_block` where it has none any more.
using block_table = std::vector<std::vector<block_id>>;

/// An engine's account of its device blocks: the last one freed is the first
/// one handed out. All groups share them.
class device_blocks {
public:
  device_blocks(std::shared_ptr<const core::layout> shape, std::uint32_t blocks,
                findings& found);

  /// Adds what a request of so many tokens lacks.
  /// @param added what was new
  /// @returns false if there are too few; then nothing was added
  bool grow(block_table& table, token_count tokens, block_table& added);

  /// Frees the blocks of sliding groups that no token from `computed` on looks
  /// at.
  void slide(block_table& table, token_count computed);

  /// Frees the blocks in which none of the first `tokens` tokens lies.
  void shrink(block_table& table, token_count tokens);

  /// Frees all but the reserved ones.
  /// @returns what is free now
  std::vector<block_id> give_back(block_table& table);

  /// The runtime may still write it: nobody gets it.
  void reserve(block_id block) {
    reserved_.insert(block);
  }

  /// The runtime will not touch it any more.
  void release(block_id block);

  /// Nobody has any.
  [[nodiscard]] bool all_free() const {
    return reserved_.empty() && free_.size() + 1 == blocks_;
  }

private:
  [[nodiscard]] std::size_t needed(std::size_t group, token_count tokens) const;

  void free(block_id block);

  std::shared_ptr<const core::layout> shape_;
  /// Zero, which nobody gets, included.
  std::uint32_t blocks_;
  findings& found_;
  std::vector<block_id> free_;
  std::set<block_id> reserved_;
};

} // namespace kvtide::explore
