// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "core/block_tables.hpp"
#include "core/layout.hpp"
#include "core/request_keys.hpp"
#include "core/short_list.hpp"
#include "core/store_intent.hpp"
#include "core/table_update.hpp"
#include "messages/request.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace kvtide {

/// What the scheduler keeps of one tracked request: the numbers that each step
/// compares, so that a request which crosses no boundary costs no message.
struct alignas(64) request_row {
  explicit request_row(const std::shared_ptr<const core::layout>& shape)
    : open_blocks(shape->groups.size()), next(shape->groups.size(), 0),
      keys(shape), sliding(shape->groups.size()) {
    // nop
  }

  // -- what every step looks at: one cache line -------------------------------

  /// The latest view: progress, ending, caps. `scheduled` is what the last
  /// step that named the request computes.
  core::store_wish wish;
  /// Fewer wanted tokens than this: nothing to store.
  token_count boundary = 0;
  /// The turn of the last step that named it: none names it twice (R10).
  msg::turn_id named_in = 0;
  static_assert(sizeof(wish) + sizeof(boundary) + sizeof(named_in) == 64);

  // -- what a step looks at that may store something, in its order ------------

  /// Jobs in flight: one load, or any number of stores. A load is here until it
  /// has its outcome.
  core::short_list<job_id, 2> jobs;
  /// Null if it died: the request then neither loads nor stores.
  request_actor actor;
  /// The turn of the last step that asks what it has to store, and its place
  /// among those that are asked.
  msg::turn_id asked_in = 0;
  std::uint32_t place = 0;
  /// Waits for room in the pool (R5).
  bool refused = false;
  /// Its block tables came whole since they were emptied last: what is new
  /// belongs behind them.
  bool has_table = false;
  /// A step has planned its tail (S2).
  bool closed = false;
  /// Block tables without the blocks before `next`.
  core::block_tables open_blocks;
  /// Per group: first chunk not yet considered stored.
  core::per_group<std::size_t> next;
  /// Gathered for the request actor's next message.
  core::table_update update;
  /// All chunk keys of the request.
  core::request_keys keys;
  /// Retries per group and chunk after failed stores (R8).
  std::map<std::pair<group_id, std::size_t>, std::uint32_t> retries;
  /// Block tables of the sliding groups as they stand in the index; empty for
  /// the others.
  std::vector<std::vector<block_id>> sliding;

  // -- its admission ----------------------------------------------------------

  /// Never load.
  bool no_read = false;
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
};

} // namespace kvtide
