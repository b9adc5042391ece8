// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/device_blocks.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace kvtide::explore {

device_blocks::device_blocks(std::shared_ptr<const core::layout> shape,
                             std::uint32_t blocks, findings& found)
  : shape_(std::move(shape)), blocks_(blocks), found_(found) {
  for (auto block = blocks_ - 1; block > 0; --block)
    free_.push_back(block);
}

bool device_blocks::grow(block_table& table, token_count tokens,
                         block_table& added) {
  auto missing = std::size_t{0};
  table.resize(shape_->groups.size());
  added.assign(table.size(), {});
  for (std::size_t g = 0; g < table.size(); ++g)
    missing += std::max(needed(g, tokens), table[g].size()) - table[g].size();
  if (missing > free_.size())
    return false;
  for (std::size_t g = 0; g < table.size(); ++g)
    while (table[g].size() < needed(g, tokens)) {
      table[g].push_back(free_.back());
      added[g].push_back(free_.back());
      free_.pop_back();
    }
  return true;
}

void device_blocks::slide(block_table& table, token_count computed) {
  for (std::size_t g = 0; g < table.size(); ++g) {
    const auto& group = shape_->groups[g];
    if (!group.sliding())
      continue;
    const auto out = std::max<token_count>(
      0, (computed - group.window_tokens + 1) / group.block_tokens);
    const auto last = std::min(static_cast<std::size_t>(out), table[g].size());
    for (std::size_t i = 0; i < last; ++i)
      if (const auto block = std::exchange(table[g][i], no_block);
          block != no_block)
        free(block);
  }
}

void device_blocks::shrink(block_table& table, token_count tokens) {
  for (std::size_t g = 0; g < table.size(); ++g)
    while (table[g].size() > needed(g, tokens)) {
      if (table[g].back() != no_block)
        free(table[g].back());
      table[g].pop_back();
    }
}

std::vector<block_id> device_blocks::give_back(block_table& table) {
  auto freed = std::vector<block_id>{};
  for (auto& list : table)
    for (auto block : std::exchange(list, {}))
      if (block != no_block && reserved_.count(block) == 0)
        freed.push_back(block);
  for (auto block : freed)
    free(block);
  return freed;
}

void device_blocks::release(block_id block) {
  if (reserved_.erase(block) == 0)
    found_.report("S7", "block " + std::to_string(block)
                          + " was released, but not reserved");
  free(block);
}

std::size_t device_blocks::needed(std::size_t group, token_count tokens) const {
  const auto length = shape_->groups[group].block_tokens;
  return static_cast<std::size_t>((tokens + length - 1) / length);
}

void device_blocks::free(block_id block) {
  if (std::find(free_.begin(), free_.end(), block) != free_.end())
    found_.report("S7",
                  "block " + std::to_string(block) + " was given back twice");
  else
    free_.push_back(block);
}

} // namespace kvtide::explore
