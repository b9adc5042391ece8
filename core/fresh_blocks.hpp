// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <algorithm>
#include <vector>

namespace kvtide::core {

/// Blocks that the engine has handed out since the last step ended: whoever
/// still reads one of them is to be waited for (FEN-01). Not a hash table, as
/// every step goes through all of it, and a table that once held the blocks of
/// a long prompt stays as large as that.
class fresh_blocks {
public:
  void add(block_id block) {
    blocks_.push_back(block);
    sorted_ = false;
  }

  [[nodiscard]] bool contains(block_id block) {
    if (!sorted_)
      std::sort(blocks_.begin(), blocks_.end());
    sorted_ = true;
    return std::binary_search(blocks_.begin(), blocks_.end(), block);
  }

  /// All, in any order. What was added twice comes twice.
  [[nodiscard]] const std::vector<block_id>& all() const noexcept {
    return blocks_;
  }

  void clear() noexcept {
    blocks_.clear();
  }

private:
  std::vector<block_id> blocks_;
  bool sorted_ = false;
};

} // namespace kvtide::core
