// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "core/layout.hpp"
#include "core/short_list.hpp"

#include <cstddef>

namespace kvtide::core {

/// What a request has of one group.
struct group_stock {
  /// Chunks whose key exists.
  std::size_t keys = 0;
  /// Length of the block table, in blocks.
  std::size_t blocks = 0;
};

/// The capability, and the only clamp: how many leading chunks of a group can
/// be stored if `wanted` tokens should be (C8). Whole chunks only,
/// without the tail of a draft group that is not settled in decode, and never
/// beyond the keys or the allocated blocks. Why the tokens are wanted is
/// `wanted_tokens`' business. Callers do not check again.
[[nodiscard]] std::size_t storable_chunks(const group_layout& group,
                                          std::size_t blocks_per_chunk,
                                          token_count wanted,
                                          token_count prompt,
                                          const group_stock& stock) noexcept;

/// The smallest number of wanted tokens at which some group may have a chunk
/// to store, if `next` are the first chunks not yet considered. Below it a
/// request has nothing to say.
[[nodiscard]] token_count next_boundary(const layout& shape,
                                        const per_group<std::size_t>& next,
                                        token_count prompt) noexcept;

/// Moves `next` to the chunks that are settled when all chunks that end at or
/// below `settled_tokens` are, and never back or past `storable`.
void advance(const layout& shape, const per_group<std::size_t>& storable,
             token_count settled_tokens, per_group<std::size_t>& next);

} // namespace kvtide::core
