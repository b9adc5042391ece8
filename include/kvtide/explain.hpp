// SPDX-License-Identifier: Apache-2.0

/// @file
/// What `runtime::explain` says: how far a lookup of a request would get now,
/// and why no further.

#pragma once

#include "kvtide/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvtide {

/// What the host pool has of a chunk.
enum class chunk_state : std::uint8_t {
  /// Never stored, or forgotten.
  absent,
  /// Absent, and the eviction policy remembers that it was there. Only
  /// `eviction_policy::arc` does.
  evicted,
  /// On its way to the host: not visible yet.
  writing,
  /// There, and a load of somebody reads it right now.
  loading,
  /// There, but without its first tokens: these lay outside of a sliding window
  /// when it was stored (R4).
  partial,
  /// There.
  ready,
};

/// Why a lookup ends where it ends. The first that applies, in this order.
enum class miss_reason : std::uint8_t {
  /// It does not miss: all whole chunks whose hashes are known are found.
  none,
  /// `options::host_bytes` is zero.
  offloading_off,
  /// Between `sleep` and `wake`.
  asleep,
  /// A job of the request itself is in flight; ask again when it has ended.
  own_jobs,
  /// The request goes on without the cache (`stats::lost_requests`).
  request_lost,
  /// `add_request::no_read`.
  no_read,
  /// A rank has not registered its memory, or is gone.
  rank_away,
  /// The host pool's book is lost until the next `reset` (`cache_lost`).
  cache_lost,
  /// No whole chunk behind `local` has all its prefix hashes.
  no_keys,
  /// The hit would leave nothing to compute, and was lowered (R16).
  last_token,
  /// A chunk is not there.
  absent,
  /// A chunk is not there any more.
  evicted,
  /// A chunk is not there, and was looked up less often than
  /// `options::store_threshold` asks for.
  below_threshold,
  /// A chunk is being written; ask again, or, after `options::max_deferrals`
  /// times, it counts as absent (R7).
  writing,
  /// A chunk is being loaded by another request; ask again.
  loading,
  /// A chunk of a sliding group is there, but not all of it that the window
  /// needs (R4).
  window_hole,
  /// The last chunk of a draft group does not count (R14).
  draft,
};

/// The enumerator's name, e.g. "below_threshold". Never null.
[[nodiscard]] const char* to_string(chunk_state state) noexcept;
[[nodiscard]] const char* to_string(miss_reason reason) noexcept;

/// Answers `explain`. Right until the next call or notice changes something.
struct explain_answer {
  ticket_id ticket = 0;
  request_id request = 0;
  token_count prompt_tokens = 0;

  // -- the lookup that is explained -------------------------------------------

  /// Tokens whose ids are known: those of the last lookup, step or output.
  token_count known_tokens = 0;
  /// Tokens on the device, as the last answered lookup said; zero before the
  /// first.
  token_count local = 0;
  /// Leading tokens for which all groups have chunk keys.
  token_count hashed_tokens = 0;
  /// It would be told to ask again; `tokens` has no meaning then.
  bool ask_again = false;
  /// Tokens behind `local` that it would find.
  token_count tokens = 0;

  // -- why --------------------------------------------------------------------

  miss_reason reason = miss_reason::none;
  /// The chunk that `reason` is about, if it is about one: its group and its
  /// index among the request's chunks of that group.
  group_id group = 0;
  std::size_t chunk = 0;
  /// One sentence for a person: what ends the hit, and what could be done.
  std::string text;

  /// Per group: one state for each chunk that has a key, from the first on.
  /// Whole chunks of the prompt behind these have no hashes yet.
  std::vector<std::vector<chunk_state>> chunks;
};

} // namespace kvtide
