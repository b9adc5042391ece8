// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/options.hpp"
#include "kvtide/result.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvtide::core {

/// What follows from the options of one group (C1).
struct group_layout {
  token_count block_tokens = 0;
  /// Tokens per chunk.
  token_count chunk_tokens = 0;
  /// Prefix hashes per chunk.
  std::size_t hashes_per_chunk = 0;
  /// Width of the sliding window in tokens; zero means full attention.
  token_count window_tokens = 0;
  /// Width of the window in chunks, rounded up; zero means full attention.
  std::size_t window_chunks = 0;
  /// Sliding groups only: chunks per chunk of the full attention groups, if a
  /// hit can end only there and the window is narrower; zero means none.
  std::size_t segment = 0;
  bool draft = false;

  [[nodiscard]] bool sliding() const noexcept {
    return window_tokens > 0;
  }
};

/// What follows from the options of all groups. Immutable, shared by all
/// actors.
struct layout {
  std::vector<group_layout> groups;
  std::size_t blocks_per_chunk = 0;
  token_count hash_tokens = 0;
  /// Full attention groups in configured order, then sliding groups from wide
  /// to narrow (C1).
  std::vector<group_id> search_order;
  bool any_sliding = false;
  /// Part of every key.
  std::uint64_t model = 0;
};

/// @returns `ec::invalid_options` with a sentence if a number is out of range
///          or a chunk is not a whole number of hashes.
[[nodiscard]] result<layout> make_layout(const options& opts);

} // namespace kvtide::core
