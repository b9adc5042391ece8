// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the cache manager understands. Only the scheduler speaks to it, so that
/// one path gives one order; a publisher only looks. Answers carry the turn of
/// their question.

#pragma once

#include "core/cache.hpp"
#include "core/short_list.hpp"
#include "messages/fwd.hpp"
#include "messages/turn.hpp"

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace kvtide::msg {

/// All ranks have said how many slots they have; the pool starts empty.
struct open_pool {
  std::uint64_t slots = 0;
};

/// One query per request of a lookup. Answered by `search_result`.
struct search {
  turn_id turn = 0;
  std::vector<core::search_query> queries;
};

/// All that a step wants from the pool, in canonical order. Answered by
/// `stores_prepared`.
struct prepare_stores {
  turn_id turn = 0;
  /// Keys of requests that were preempted or have finished: moved to the newest
  /// end before the offers are looked at (R12).
  std::vector<core::per_group<core::key_view>> moved;
  std::vector<core::store_offer> offers;
};

/// Answered by `load_prepared`.
struct prepare_load {
  turn_id turn = 0;
  std::vector<chunk_key> keys;
  /// Ends with this call; zero for none.
  promise_id promise = 0;
};

/// A job has its outcome.
struct complete_job {
  turn_id turn = 0;
  job_kind kind = job_kind::store;
  job_rows rows;
  bool ok = true;
  /// A late copy may still touch the slots of a failed store.
  bool still_copying = false;
  /// Keys of a request whose last job this was (R12).
  core::per_group<core::key_view> moved;
};

/// In the order in which they got it. A failed store is answered by
/// `rolled_back`.
struct complete_jobs {
  std::vector<complete_job> jobs;
};

struct release_promise {
  promise_id promise = 0;
};

/// The late copies that kept these slots out of use have ended.
struct release_slots {
  std::vector<slot_id> slots;
};

struct reset_pool {
  /// Slots that copies in flight may touch (R9).
  std::vector<slot_id> running;
  /// They stay out of use until `release_slots`.
  bool keep_running = true;
  /// A rank's memory is another one, and has these chunks: what the pool has
  /// under their keys stays.
  std::optional<std::vector<core::kept_chunk>> kept;
};

/// Answered by `cache_events`.
struct drain_events {
  turn_id turn = 0;
};

/// Answered by `pool_report`.
struct get_pool_report {
  turn_id turn = 0;
};

/// What would a search of this find, and why no more? Without any effect.
/// Answered by `explained`.
struct explain_keys {
  turn_id turn = 0;
  core::search_query query;
};

/// Asks for the state of single keys; counts as a use of each. Answered by
/// `key_states`.
struct lookup_keys {
  std::vector<chunk_key> keys;
};

/// One access to each key, from the last to the first.
struct touch_keys {
  std::vector<chunk_key> keys;
};

/// From the publisher: which chunks lie in these slots? Answered by
/// `pool_part`.
struct get_pool_part {
  slot_id first = 0;
  std::uint32_t count = 0;
};

} // namespace kvtide::msg

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::get_pool_part)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::open_pool)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::search)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::prepare_stores)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::prepare_load)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::complete_jobs)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::release_promise)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::release_slots)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::reset_pool)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::drain_events)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::get_pool_report)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::explain_keys)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::lookup_keys)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::touch_keys)

namespace kvtide {

/// Owns the host pool's book: slots, reference counts, eviction, promises.
using cache_manager_actor = caf::typed_actor<
  caf::reacts_to<msg::open_pool>, caf::reacts_to<msg::search>,
  caf::reacts_to<msg::prepare_stores>, caf::reacts_to<msg::prepare_load>,
  caf::reacts_to<msg::complete_jobs>, caf::reacts_to<msg::release_promise>,
  caf::reacts_to<msg::release_slots>, caf::reacts_to<msg::reset_pool>,
  caf::reacts_to<msg::drain_events>, caf::reacts_to<msg::get_pool_report>,
  caf::reacts_to<msg::explain_keys>, caf::reacts_to<msg::lookup_keys>,
  caf::reacts_to<msg::touch_keys>, caf::reacts_to<msg::get_pool_part>>;

} // namespace kvtide
