// SPDX-License-Identifier: Apache-2.0

#include "core/store_plan.hpp"

#include "core/store_capability.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace kvtide::core {

namespace {

bool reachable(const group_layout& group, std::size_t chunk,
               std::size_t storable) noexcept {
  if (group.segment == 0)
    return true;
  // Hits end only where a chunk of the full attention groups does; of the
  // chunks before that only the window is ever read.
  const auto place = chunk % group.segment;
  const auto length = std::min(group.segment, storable - (chunk - place));
  const auto tail = group.window_chunks + (group.draft ? 1 : 0);
  return place + tail >= length;
}

/// R4: takes away the blocks before a hole, as they are never read: a window
/// that ends behind the hole would need the hole too.
/// @returns how many blocks at the front are not there
std::size_t hide_what_precedes_a_hole(std::vector<block_id>& blocks) {
  const auto hole = std::find(blocks.rbegin(), blocks.rend(), no_block);
  const auto holes = static_cast<std::size_t>(blocks.rend() - hole);
  std::fill_n(blocks.begin(), holes, no_block);
  return holes;
}

/// Blocks of a chunk.
/// @pre the table has them all
std::vector<block_id> blocks_of(const table_view& table, std::size_t chunk,
                                std::size_t per_chunk) {
  const auto part
    = table.blocks.subspan(chunk * per_chunk - table.first, per_chunk);
  return {part.begin(), part.end()};
}

} // namespace

store_plan plan_store(const layout& shape, const rules& rule,
                      const request_stock& stock, token_count wanted,
                      std::span<const std::size_t> next) {
  auto out = store_plan{};
  const auto per_chunk = shape.blocks_per_chunk;
  out.storable.reserve(shape.groups.size());
  for (group_id g = 0; g < shape.groups.size(); ++g) {
    const auto& group = shape.groups[g];
    const auto& keys = stock.keys[g];
    const auto table = stock.tables.view(g);
    const auto storable = storable_chunks(
      group, per_chunk, wanted, stock.prompt, {keys.size(), table.size()});
    out.storable.push_back(storable);
    for (auto chunk = next[g]; chunk < storable; ++chunk) {
      if (!reachable(group, chunk, storable))
        continue;
      auto blocks = blocks_of(table, chunk, per_chunk);
      if (blocks.back() == no_block)
        continue;
      const auto end = static_cast<token_count>(chunk + 1) * group.chunk_tokens;
      const auto start = end - group.chunk_tokens;
      auto first_token = start;
      if (rule.window_holes_hide_chunk) { // R4
        first_token
          += static_cast<token_count>(hide_what_precedes_a_hole(blocks))
           * group.block_tokens;
        // The window that ends with the chunk must be whole.
        const auto needed = group.sliding()
                            ? std::max(start, end - group.window_tokens + 1)
                            : start;
        if (first_token > needed)
          continue;
      }
      auto candidate = store_candidate{};
      candidate.key = keys[chunk];
      candidate.chunk = static_cast<std::uint32_t>(chunk);
      candidate.end_tokens = end;
      candidate.first_token = first_token;
      candidate.blocks = std::move(blocks);
      out.candidates.push_back(std::move(candidate));
    }
  }
  return out;
}

job_rows rows_of(const store_grant& grant,
                 std::span<store_candidate> candidates) {
  const auto count = grant.accepted.size();
  auto rows = std::make_shared<job_row[]>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& accepted = grant.accepted[i];
    auto& what = candidates[accepted.candidate];
    rows[i] = {what.key, accepted.slot, what.chunk, std::move(what.blocks)};
  }
  return {std::move(rows), count};
}

} // namespace kvtide::core
