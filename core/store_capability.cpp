// SPDX-License-Identifier: Apache-2.0

#include "core/store_capability.hpp"

#include <algorithm>
#include <limits>

namespace kvtide::core {

std::size_t storable_chunks(const group_layout& group,
                            std::size_t blocks_per_chunk, token_count wanted,
                            token_count prompt,
                            const group_stock& stock) noexcept {
  auto chunks = static_cast<std::size_t>(wanted / group.chunk_tokens);
  if (group.draft && wanted > prompt && chunks > 0)
    --chunks;
  return std::min({chunks, stock.keys, stock.blocks / blocks_per_chunk});
}

token_count next_boundary(const layout& shape,
                          const per_group<std::size_t>& next,
                          token_count prompt) noexcept {
  auto out = std::numeric_limits<token_count>::max();
  for (std::size_t g = 0; g < shape.groups.size(); ++g) {
    const auto& group = shape.groups[g];
    auto end = static_cast<token_count>(next[g] + 1) * group.chunk_tokens;
    // In decode a draft group withholds one chunk.
    if (group.draft && end > prompt)
      end += group.chunk_tokens;
    out = std::min(out, end);
  }
  return out;
}

void advance(const layout& shape, const per_group<std::size_t>& storable,
             token_count settled_tokens, per_group<std::size_t>& next) {
  for (std::size_t g = 0; g < next.size(); ++g) {
    const auto settled
      = static_cast<std::size_t>(settled_tokens / shape.groups[g].chunk_tokens);
    next[g] = std::max(next[g], std::min(storable[g], settled));
  }
}

} // namespace kvtide::core
