// SPDX-License-Identifier: Apache-2.0

/// @file
/// What an engine says to the runtime, one struct per call. Calls take effect
/// in the order in which they are made (S1).

#pragma once

#include "kvtide/finish_reason.hpp"
#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kvtide {

/// A new request, of at most `max_tokens` tokens. Fails with
/// `ec::duplicate_request` while one with the same id is tracked.
struct add_request {
  request_id request = 0;
  token_count prompt_tokens = 0;
  /// Tokens whose ids are known; at least `prompt_tokens`.
  token_count known_tokens = 0;
  /// Never load for this request; storing is still allowed.
  bool no_read = false;
  /// Never store for this request.
  bool no_store = false;
  /// Store nothing beyond the prompt.
  bool prompt_only = false;
  /// Store nothing beyond this many tokens.
  token_count cap = no_cap;
  /// Has no effect yet; for eviction, later.
  std::int32_t priority = 0;
  /// Seconds; zero means no limit. Has no effect yet.
  std::uint32_t time_to_live = 0;
  /// Has no effect yet; for quotas, later.
  std::string tenant{}; // Braced, so that naming the first fields suffices.
};

/// More prefix hashes of a request, each for `options::tokens_per_hash` tokens
/// that are all known. `prefix_hasher` makes some for engines that have none.
struct extend_keys {
  request_id request = 0;
  /// Index of the first hash; must follow the last one sent.
  std::uint64_t first = 0;
  std::vector<prefix_hash> hashes;
  /// Ids of the tokens that `hashes` cover, for events; may be empty.
  std::vector<std::int32_t> token_ids;
  /// For events, with the first hashes only: what the request's first chunk
  /// follows; empty for nothing.
  prefix_hash parent;
};

/// Asks how many tokens beyond `local` the host can serve.
struct lookup_row {
  request_id request = 0;
  /// Leading tokens that the device's own prefix cache has.
  token_count local = 0;
  token_count known_tokens = 0;
};

/// The engine gave a looked-up request its blocks.
struct allocated {
  request_id request = 0;
  /// Tokens of the lookup's answer that shall be loaded; zero for none.
  token_count external = 0;
  /// Per group, the whole block table so far, with room for every token up to
  /// the end of the load.
  std::vector<std::vector<block_id>> blocks;
  /// Per group and block: 1 where the block already carries content known to
  /// the device's prefix cache.
  std::vector<std::vector<std::uint8_t>> hashed;
};

enum class row_kind : std::uint8_t {
  /// First time in a step; `new_blocks` is the full block table.
  fresh,
  /// `new_blocks` are appended. A request that was looked up or preempted since
  /// its last `fresh` or `resumed` row has nothing to append them to: they are
  /// ignored, and nothing is stored from it until it is `resumed`.
  running,
  /// Back after a preemption; `new_blocks` is the full block table.
  resumed,
};

/// One scheduled request of a step.
struct step_row {
  request_id request = 0;
  row_kind kind = row_kind::running;
  /// Per group; an empty outer list means no new blocks.
  std::vector<std::vector<block_id>> new_blocks;
  /// Tokens whose KV was computed before this step.
  token_count computed = 0;
  /// Tokens that this step computes.
  token_count scheduled = 0;
  /// Tokens whose ids are known; may lag behind with asynchronous scheduling.
  token_count known = 0;
};

/// The end of a request. Without effect if a number is out of range. Its blocks
/// may be reused at once, except those that the answer names.
struct finish_call {
  request_id request = 0;
  finish_reason reason = finish_reason::stop;
  token_count known = 0;
  token_count computed = 0;
};

/// One turn of the engine.
struct step_call {
  step_id step = 0;
  /// In the engine's order.
  std::vector<step_row> rows;
  std::vector<request_id> preempted;
  /// Requests whose `finish` came since the last step, in the order in which
  /// their tails shall be planned. Requests that are not named are planned
  /// behind them, in call order (S2).
  std::vector<finish_call> finished;
};

/// Progress that became known between two steps.
struct output_row {
  request_id request = 0;
  token_count known = 0;
  token_count computed = 0;
};

struct outputs_call {
  step_id step = 0;
  std::vector<output_row> rows;
};

/// Rolls a request back to its first `tokens` tokens: rejected drafts, edited
/// input. Keys beyond are forgotten; stores that still read the blocks behind
/// are flushed before the next step computes.
struct truncate_call {
  request_id request = 0;
  token_count tokens = 0;
};

/// Work that a rank's end of a step waits for: handles of compute events. On
/// the host devices see `rank::end_step`.
using compute_events = std::vector<std::uint64_t>;

} // namespace kvtide
