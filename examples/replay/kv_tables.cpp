// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/kv_tables.hpp"

#include "examples/replay/mix.hpp"

#include <algorithm>

namespace kvtide::replay {

namespace {

// Never zero in practice, which would mean "no key".
std::uint64_t content_key(const token_text& text, std::size_t index,
                          std::size_t group) {
  return mix(text.hash(index), group);
}

} // namespace

token_count kv_tables::find_prefix(const token_text& text,
                                   token_count limit) const {
  auto count = std::size_t{0};
  const auto most = static_cast<std::size_t>(limit / shape_.block_tokens());
  while (count < most && find(text, count, 0) != no_block)
    ++count;
  for (auto group = std::size_t{1}; group < shape_.groups(); ++group) {
    // From the end, look for a run that covers the window before its end.
    const auto window_start = [&] {
      return shape_.first_block(group, static_cast<token_count>(count)
                                         * shape_.block_tokens());
    };
    for (auto run = std::size_t{0}; run < count - window_start();) {
      const auto index = count - run - 1;
      if (find(text, index, group) != no_block) {
        ++run;
      } else {
        count = index;
        run = 0;
      }
    }
  }
  return static_cast<token_count>(count) * shape_.block_tokens();
}

void kv_tables::take_prefix(sequence& seq, token_count tokens) {
  const auto count = shape_.blocks_for(tokens);
  seq.tables.assign(shape_.groups(), {});
  for (auto group = std::size_t{0}; group < shape_.groups(); ++group) {
    auto& table = seq.tables[group];
    table.assign(count, no_block);
    for (auto index = shape_.first_block(group, tokens); index < count;
         ++index) {
      table[index] = find(seq.text, index, group);
      pool_.retain(table[index]);
    }
  }
  seq.published = count;
}

bool kv_tables::grow(sequence& seq, token_count tokens, token_count ready) {
  const auto count = shape_.blocks_for(tokens);
  auto needed = std::size_t{0};
  for (auto group = std::size_t{0}; group < shape_.groups(); ++group) {
    const auto from
      = std::max(seq.tables[group].size(), shape_.first_block(group, ready));
    needed += count > from ? count - from : 0;
  }
  if (needed > pool_.free_blocks())
    return false;
  for (auto group = std::size_t{0}; group < shape_.groups(); ++group) {
    auto& table = seq.tables[group];
    const auto hole = std::min(count, shape_.first_block(group, ready));
    if (table.size() < hole)
      table.resize(hole, no_block);
    while (table.size() < count)
      table.push_back(pool_.allocate());
  }
  return true;
}

void kv_tables::leave_window(sequence& seq) {
  for (auto group = std::size_t{1}; group < shape_.groups(); ++group) {
    auto& table = seq.tables[group];
    // What lies before a hole was left before.
    for (auto index
         = std::min(table.size(), shape_.first_block(group, seq.computed));
         index > 0 && table[index - 1] != no_block; --index) {
      pool_.release(table[index - 1], block_pool::reuse::last);
      table[index - 1] = no_block;
    }
  }
}

void kv_tables::publish(sequence& seq) {
  const auto full = static_cast<std::size_t>(std::min(seq.known, seq.computed)
                                             / shape_.block_tokens());
  for (; seq.published < full; ++seq.published) {
    const auto index = seq.published;
    for (auto group = std::size_t{0}; group < shape_.groups(); ++group)
      if (const auto block = seq.tables[group][index]; block != no_block)
        pool_.publish(block, content_key(seq.text, index, group));
  }
}

void kv_tables::release(sequence& seq, block_pool::reuse order,
                        std::vector<block_id> kept) {
  std::sort(kept.begin(), kept.end());
  // From the end, so that the start of a text stays longest.
  for (auto& table : seq.tables) {
    std::for_each(table.rbegin(), table.rend(), [&](block_id block) {
      if (block != no_block
          && !std::binary_search(kept.begin(), kept.end(), block))
        pool_.release(block, order);
    });
    table.clear();
  }
  seq.published = 0;
}

void kv_tables::release(const std::vector<block_id>& blocks) {
  for (const auto block : blocks)
    pool_.release(block, block_pool::reuse::last);
}

block_id kv_tables::find(const token_text& text, std::size_t index,
                         std::size_t group) const {
  return pool_.find(content_key(text, index, group));
}

} // namespace kvtide::replay
