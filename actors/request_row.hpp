// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "core/key_list.hpp"
#include "core/request_update.hpp"
#include "core/store_intent.hpp"
#include "messages/request.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace kvtide {

/// What the scheduler keeps of one tracked request: the numbers that each step
/// compares, so that a request which crosses no boundary costs no message.
struct request_row {
  /// Null if it died: the request then neither loads nor stores.
  request_actor actor;

  /// The latest view: progress, ending, caps. `scheduled` is what the last
  /// step that named the request computes.
  core::store_wish wish;
  /// Never load.
  bool no_read = false;

  /// Gathered for the request's next message.
  core::request_update update;
  /// Hashes received so far, those in `update` included.
  std::uint64_t hashes = 0;
  /// Its block tables came whole since they were emptied last: what is new
  /// belongs behind them.
  bool has_table = false;
  /// Block tables of the sliding groups as they stand in the index; empty for
  /// the others.
  std::vector<std::vector<block_id>> sliding;

  /// Per group: first chunk not yet considered stored.
  std::vector<std::size_t> next;
  /// Fewer wanted tokens than this: nothing to store.
  token_count boundary = 0;
  /// Waits for room in the pool (R5).
  bool refused = false;
  /// Retries per group and chunk after failed stores (R8).
  std::map<std::pair<group_id, std::size_t>, std::uint32_t> retries;

  /// Jobs in flight: one load, or any number of stores.
  std::vector<job_id> jobs;

  /// Tokens on the device at the last answered lookup.
  token_count local = 0;
  /// `local` plus what that lookup found.
  token_count hit_tokens = 0;
  /// What that lookup holds; zero for nothing (R11).
  promise_id promise = 0;
  /// Lookups of this admission that answered "ask again" (R7).
  std::uint32_t deferrals = 0;
  /// This admission's access was made (R12).
  bool accessed = false;

  /// A step has planned its tail (S2).
  bool closed = false;
  /// All keys, from the end of the request on (R12).
  std::vector<core::key_view> final_keys;
};

} // namespace kvtide
