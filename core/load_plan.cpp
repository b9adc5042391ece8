// SPDX-License-Identifier: Apache-2.0

#include "core/load_plan.hpp"

#include "core/round_up.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace kvtide::core {

std::vector<job_row>
plan_load(const layout& shape, std::span<const key_view> keys,
          token_count total, std::span<const std::vector<block_id>> blocks,
          std::span<const std::vector<std::uint8_t>> hashed) {
  auto out = std::vector<job_row>{};
  const auto per_chunk = shape.blocks_per_chunk;
  for (group_id g = 0; g < shape.groups.size(); ++g) {
    const auto& group = shape.groups[g];
    const auto count
      = std::min(units_for(total, group.block_tokens), blocks[g].size());
    auto first = std::size_t{0};
    while (first < count && (blocks[g][first] == no_block || hashed[g][first]))
      ++first;
    for (auto begin = first; begin < count;) {
      const auto chunk = begin / per_chunk;
      const auto end = std::min(count, (chunk + 1) * per_chunk);
      auto row = job_row{};
      if (chunk < keys[g].size())
        row.key = keys[g][chunk];
      else // Never found in the pool: the load fails as a whole (R13).
        row.key = {prefix_hash{}, g, shape.model};
      row.chunk = static_cast<std::uint32_t>(chunk);
      row.blocks.assign(per_chunk, no_block);
      std::copy(blocks[g].begin() + static_cast<std::ptrdiff_t>(begin),
                blocks[g].begin() + static_cast<std::ptrdiff_t>(end),
                row.blocks.begin()
                  + static_cast<std::ptrdiff_t>(begin % per_chunk));
      out.push_back(std::move(row));
      begin = end;
    }
  }
  return out;
}

} // namespace kvtide::core
