// SPDX-License-Identifier: Apache-2.0

/// @file
/// The tokens that compute and copies touch, one after the other.

#pragma once

#include "core/layout.hpp"
#include "tests/explore/rank_memory.hpp"
#include "tests/explore/shadow.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvtide::explore {

inline bool names_block(const job& work, block_id block) {
  return std::any_of(
    work.rows.begin(), work.rows.end(), [block](const job_row& row) {
      return std::find(row.blocks.begin(), row.blocks.end(), block)
          != row.blocks.end();
    });
}

/// Calls `fun(group, block, token inside)` for each token of a row that compute
/// touches between two positions.
template <class Function>
void for_tokens(const core::layout& shape, const compute_row& row,
                token_count from, token_count to, Function fun) {
  for (group_id g = 0; g < row.table.size(); ++g) {
    const auto length = shape.groups[g].block_tokens;
    const auto window = shape.groups[g].window_tokens;
    const auto low = to <= row.from && window > 0
                     ? std::max(from, row.from - window + 1)
                     : from;
    for (auto at = low; at < to; ++at) {
      const auto place = static_cast<std::size_t>(at / length);
      if (place < row.table[g].size() && row.table[g][place] != no_block)
        fun(g, row.table[g][place], at);
    }
  }
}

/// One token of a chunk in one layer of a device block.
struct cell {
  /// Of the block in its row.
  std::size_t index = 0;
  block_id block = 0;
  std::uint32_t layer = 0;
  /// Inside the block.
  token_count at = 0;
  /// What should be there.
  std::uint64_t token = 0;
};

/// Calls `fun(cell)` for all that a row of a job copies.
template <class Function>
void for_cells(const core::layout& shape, const job_row& row,
               const std::vector<std::uint64_t>& tokens, Function fun) {
  const auto length = shape.groups[row.key.group].block_tokens;
  auto x = cell{};
  for (x.index = 0; x.index < row.blocks.size(); ++x.index) {
    x.block = row.blocks[x.index];
    if (x.block == no_block)
      continue;
    for (x.at = 0; x.at < length; ++x.at) {
      x.token = tokens[x.index * static_cast<std::size_t>(length)
                       + static_cast<std::size_t>(x.at)];
      for (x.layer = 0; x.layer < rank_memory::layers; ++x.layer)
        fun(x);
    }
  }
}

} // namespace kvtide::explore
