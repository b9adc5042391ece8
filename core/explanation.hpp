// SPDX-License-Identifier: Apache-2.0

/// @file
/// Why a lookup ends where it ends.

#pragma once

#include "kvtide/explain.hpp"
#include "kvtide/ids.hpp"

#include "core/host_pool.hpp"
#include "core/layout.hpp"
#include "core/rules.hpp"
#include "core/search.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace kvtide::core {

/// What the host pool has for a request, and how far a search would get.
struct explanation {
  /// What the search would answer; none means "ask again".
  std::optional<token_count> tokens = 0;
  miss_reason reason = miss_reason::none;
  /// Whom `reason` is about, if it is about a chunk.
  group_id group = 0;
  std::size_t chunk = 0;
  /// Per group: one state for each chunk that has a key.
  std::vector<std::vector<chunk_state>> chunks;
};

/// Leading tokens for which all groups have keys.
/// @param keys one view per group
[[nodiscard]] token_count keyed_tokens(const layout& shape,
                                       std::span<const key_view> keys);

/// Searches as `hit_search::run` does, but counts no use, and says why the
/// answer is no larger. Changes nothing. Costs a few searches.
/// @param watch_loading as for `hit_search`
[[nodiscard]] explanation explain_search(const layout& shape, const rules& rule,
                                         host_pool& pool, bool watch_loading,
                                         const search_input& in);

/// What ends a lookup whatever the pool has.
struct lookup_obstacles {
  bool asleep = false;
  bool own_jobs = false;
  bool request_lost = false;
  bool no_read = false;
  bool rank_away = false;
  bool cache_lost = false;
};

/// The first obstacle, or `miss_reason::none`: the pool decides.
[[nodiscard]] miss_reason first_of(const lookup_obstacles& what);

/// Puts what the pool says and what stands before it into `out`, and a sentence
/// about it. The numbers of the lookup are there already.
void conclude(const layout& shape, miss_reason obstacle, explanation found,
              explain_answer& out);

} // namespace kvtide::core
