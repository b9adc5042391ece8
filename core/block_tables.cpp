// SPDX-License-Identifier: Apache-2.0

#include "core/block_tables.hpp"

#include <algorithm>

namespace kvtide::core {

void block_tables::empty() {
  for (auto& table : tables_) {
    table.first = 0;
    table.blocks.clear();
  }
}

void block_tables::append(group_id group, std::span<const block_id> blocks) {
  auto& list = tables_[group].blocks;
  list.insert(list.end(), blocks.begin(), blocks.end());
}

void block_tables::clear(group_id group, std::size_t position) {
  auto& table = tables_[group];
  if (position >= table.first)
    table.blocks[position - table.first] = no_block;
}

void block_tables::apply(const table_update& update) {
  if (update.empty_tables)
    empty();
  for (group_id g = 0; g < update.appended.size(); ++g)
    append(g, update.appended[g]);
  for (const auto& place : update.cleared)
    clear(place.group, place.position);
}

void block_tables::forget_before(group_id group, std::size_t position) {
  auto& table = tables_[group];
  if (position <= table.first)
    return;
  auto& list = table.blocks;
  const auto count = std::min(position - table.first, list.size());
  list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count));
  table.first += count;
  if (list.capacity() > 4 * list.size() + 16) // Room of a whole prompt.
    list.shrink_to_fit();
}

} // namespace kvtide::core
