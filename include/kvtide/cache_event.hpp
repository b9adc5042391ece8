// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kvtide {

/// Where cached content lies.
enum class cache_medium : std::uint8_t {
  host,
};

/// One chunk that a `stored` event names.
struct stored_chunk {
  chunk_key key;
  /// Key of the chunk before it in the same group; none for the first chunk,
  /// or where the engine did not say.
  std::optional<chunk_key> parent;
  /// Ids of the tokens of this chunk; empty unless the engine passed them to
  /// `extend_keys`.
  std::vector<std::int32_t> token_ids;
  /// Tokens per chunk.
  token_count tokens = 0;
};

/// What a router or an operator may want to know about the cache's content, in
/// the order in which it happened. A chunk is announced as stored only after
/// every rank has it.
struct cache_event {
  enum class kind_t : std::uint8_t { stored, removed };

  kind_t kind = kind_t::stored;
  cache_medium medium = cache_medium::host;
  /// Filled for `stored`, in the order of the job's rows.
  std::vector<stored_chunk> stored;
  /// Filled for `removed`, in the order of eviction.
  std::vector<chunk_key> removed;
};

} // namespace kvtide
