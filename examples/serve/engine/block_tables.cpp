// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/engine/block_tables.hpp"

#include <algorithm>

namespace serve {

using kvtide::block_id;
using kvtide::no_block;
using kvtide::token_count;

block_tables::block_tables(const model_shape& shape,
                           std::int32_t tokens_per_block, std::uint32_t blocks)
  : shape_(shape), tokens_per_block_(tokens_per_block), pool_(blocks) {
  // nop
}

std::size_t block_tables::most_needed(token_count tokens,
                                      token_count step) const {
  auto res = blocks_for(tokens);
  for (auto group = std::size_t{1}; group < groups(); ++group)
    // The window of the first token of a step, and the step. Both may begin in
    // the middle of a block.
    res += std::min(blocks_for(tokens),
                    blocks_for(shape_.window_of(group) + step) + 2);
  return res;
}

void block_tables::take_prefix(sequence& seq) {
  const auto most
    = static_cast<std::size_t>((seq.known() - 1) / tokens_per_block_);
  auto count = std::size_t{0};
  while (count < most && find(seq, count, 0) != no_block)
    ++count;
  // A sliding group must have all that the next token attends to; else the
  // prefix ends before the gap.
  const auto tokens_of = [this](std::size_t blocks) {
    return static_cast<token_count>(blocks) * tokens_per_block_;
  };
  for (auto group = std::size_t{1}; group < groups(); ++group)
    for (auto index = count; index > first_block(group, tokens_of(count));)
      if (find(seq, --index, group) == no_block)
        count = index;
  seq.local = tokens_of(count);
  seq.published = count;
  seq.table.assign(groups(), std::vector<block_id>(count, no_block));
  for (auto group = std::size_t{0}; group < groups(); ++group)
    for (auto index = first_block(group, seq.local); index < count; ++index) {
      seq.table[group][index] = find(seq, index, group);
      pool_.retain(seq.table[group][index]);
    }
}

bool block_tables::grow(sequence& seq, token_count tokens, token_count ready) {
  const auto count = blocks_for(tokens);
  const auto start = [&](std::size_t group) {
    return std::max(seq.table[group].size(),
                    std::min(count, first_block(group, ready)));
  };
  auto needed = std::size_t{0};
  for (auto group = std::size_t{0}; group < groups(); ++group)
    needed += count > start(group) ? count - start(group) : 0;
  if (needed > pool_.free_blocks())
    return false;
  for (auto group = std::size_t{0}; group < groups(); ++group) {
    auto& table = seq.table[group];
    table.resize(start(group), no_block);
    while (table.size() < count)
      table.push_back(pool_.allocate());
  }
  return true;
}

bool block_tables::mend(sequence& seq, token_count from,
                        const std::vector<block_id>& lost) {
  auto needed = std::size_t{0};
  for (auto group = std::size_t{0}; group < groups(); ++group) {
    auto& table = seq.table[group];
    for (auto index = std::size_t{0}; index < table.size(); ++index) {
      auto& block = table[index];
      if (std::find(lost.begin(), lost.end(), block) != lost.end())
        block = no_block;
      needed += block == no_block && index >= first_block(group, from) ? 1 : 0;
    }
  }
  if (needed > pool_.free_blocks())
    return false;
  for (auto group = std::size_t{0}; group < groups(); ++group) {
    auto& table = seq.table[group];
    for (auto index = first_block(group, from); index < table.size(); ++index)
      if (table[index] == no_block)
        table[index] = pool_.allocate();
  }
  return true;
}

void block_tables::leave_window(sequence& seq) {
  for (auto group = std::size_t{1}; group < groups(); ++group) {
    auto& table = seq.table[group];
    // What lies before a hole was left before.
    for (auto index = std::min(table.size(), first_block(group, seq.computed));
         index > 0 && table[index - 1] != no_block; --index) {
      pool_.release(table[index - 1]);
      table[index - 1] = no_block;
    }
  }
}

void block_tables::publish(sequence& seq) {
  const auto full = static_cast<std::size_t>(std::min(seq.known(), seq.computed)
                                             / tokens_per_block_);
  for (; seq.published < full; ++seq.published)
    for (auto group = std::size_t{0}; group < groups(); ++group)
      if (const auto block = seq.table[group][seq.published]; block != no_block)
        pool_.publish(block, {seq.hashes[seq.published],
                              static_cast<kvtide::group_id>(group)});
}

void block_tables::release(block_table& table, std::vector<block_id> kept) {
  std::sort(kept.begin(), kept.end());
  // From the end, so that the start of a text stays longest.
  for (auto& blocks : table)
    std::for_each(blocks.rbegin(), blocks.rend(), [&](block_id block) {
      if (block != no_block
          && !std::binary_search(kept.begin(), kept.end(), block))
        pool_.release(block);
    });
  table.clear();
}

void block_tables::release(const std::vector<block_id>& blocks) {
  for (const auto block : blocks)
    pool_.release(block);
}

std::size_t block_tables::blocks_for(token_count tokens) const {
  return static_cast<std::size_t>((tokens + tokens_per_block_ - 1)
                                  / tokens_per_block_);
}

std::size_t block_tables::first_block(std::size_t group,
                                      token_count position) const {
  return static_cast<std::size_t>(
    shape_.first_seen(group, static_cast<std::int32_t>(position))
    / tokens_per_block_);
}

block_id block_tables::find(const sequence& seq, std::size_t index,
                            std::size_t group) const {
  return pool_.find({seq.hashes[index], static_cast<kvtide::group_id>(group)});
}

} // namespace serve
