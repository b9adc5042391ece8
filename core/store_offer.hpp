// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a request offers to the host pool, and what the pool answers.

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include "core/key_list.hpp"
#include "core/short_list.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace kvtide::core {

/// Names one chunk of one request.
struct chunk_ref {
  request_id request = 0;
  group_id group = 0;
  std::uint32_t chunk = 0;

  friend bool operator==(const chunk_ref&, const chunk_ref&) = default;
};

/// A chunk that may be stored.
struct store_candidate {
  chunk_key key;
  /// Index among the request's chunks of `key.group`.
  std::uint32_t chunk = 0;
  /// Where the chunk ends, in tokens of the request; at least 1.
  token_count end_tokens = 0;
  /// First token of the request that the stored chunk really holds (R4); at or
  /// below the chunk's first token if it is whole.
  token_count first_token = 0;
  /// The chunk before it. If empty, the offer's `keys` say it; only a first
  /// chunk with a parent that the engine named needs it.
  std::shared_ptr<const chunk_key> parent;
  /// For events only; may be empty.
  std::vector<std::int32_t> token_ids;
  /// What is copied, `blocks_per_chunk` of them; `no_block` is not. No business
  /// of the pool.
  std::vector<block_id> blocks;
};

/// All candidates of one request in one step.
struct store_offer {
  request_id request = 0;
  /// Groups in configured order, chunks ascending inside a group.
  short_list<store_candidate, 1> candidates;
  /// Every key of the request, one view per group in configured order. May be
  /// empty in tests of the pool alone.
  per_group<key_view> keys;
  /// `search_answer::end_tokens` of the request's last lookup, else zero.
  token_count hit_tokens = 0;
};

/// Means that every candidate is settled.
inline constexpr token_count all_tokens
  = std::numeric_limits<token_count>::max();

/// Answers a `store_offer`.
struct store_grant {
  struct chunk {
    /// Index in `store_offer::candidates`.
    std::uint32_t candidate = 0;
    slot_id slot = 0;
  };

  /// Candidates with `end_tokens` at or below this are settled: accepted, or
  /// skipped because somebody stores or stored them. The others were refused
  /// and may be offered again. `all_tokens` if nothing was refused.
  token_count settled_tokens = all_tokens;

  /// What is to be stored, in the order of the candidates.
  short_list<chunk, 2> accepted;

  /// What had to go for it, in the order of eviction.
  short_list<chunk_key, 1> evicted;

  [[nodiscard]] bool refused() const noexcept {
    return settled_tokens != all_tokens;
  }
};

/// What the end of a store job brought.
struct store_outcome {
  /// Slots became free or idle: refused requests may be offered again (R5).
  bool gained = false;
  /// After a failure: chunks that were skipped because this job was writing
  /// them, to be offered again (R8).
  std::vector<chunk_ref> skipped;
};

/// Answers a request for the slots of a load.
struct load_grant {
  /// One per key, in order; empty if a key is absent.
  std::vector<slot_id> slots;
  /// Index of the first key that is absent or still being written (R13).
  std::optional<std::size_t> absent;
  /// The end of a promise made an entry idle.
  bool gained = false;

  [[nodiscard]] bool ok() const noexcept {
    return !absent;
  }
};

} // namespace kvtide::core
