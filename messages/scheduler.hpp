// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the scheduler understands, one interface per kind of sender. Calls and
/// job outcomes wait in the scheduler's queue; only answers to the item in
/// progress are taken at once (S1).

#pragma once

#include "core/cache.hpp"
#include "core/explanation.hpp"
#include "core/store_plan.hpp"
#include "messages/fwd.hpp"
#include "messages/inspect.hpp"
#include "messages/timer.hpp"
#include "messages/turn.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <cstdint>
#include <vector>

namespace kvtide::msg {

// -- from the engine ----------------------------------------------------------

struct add {
  ticket_id ticket = 0;
  add_request call;
};

struct extend {
  ticket_id ticket = 0;
  extend_keys call;
};

/// Answered by `lookup_answer`.
struct lookup {
  ticket_id ticket = 0;
  std::vector<lookup_row> rows;
};

struct decline {
  ticket_id ticket = 0;
  promise_id promise = 0;
};

struct allocate {
  ticket_id ticket = 0;
  allocated call;
};

/// Answered by `step_plan`.
struct step {
  ticket_id ticket = 0;
  step_call call;
};

struct outputs {
  ticket_id ticket = 0;
  outputs_call call;
};

struct truncate {
  ticket_id ticket = 0;
  truncate_call call;
};

/// Answered by `finish_answer`.
struct finish {
  ticket_id ticket = 0;
  finish_call call;
};

/// Answered by `call_done`.
struct reset {
  ticket_id ticket = 0;
};

/// Answered by `stats_answer`.
struct get_stats {
  ticket_id ticket = 0;
};

/// Answered by `snapshot_answer`.
struct get_snapshot {
  ticket_id ticket = 0;
};

/// Answered by `events_answer`.
struct take_events {
  ticket_id ticket = 0;
};

/// Answered by `call_done`.
struct shutdown {
  ticket_id ticket = 0;
  nanoseconds_t deadline = 0;
};

/// Simulated time moves to `now`. Answered by `call_done`.
struct advance {
  ticket_id ticket = 0;
  nanoseconds_t now = 0;
};

/// Answered by `call_done`.
struct sleep {
  ticket_id ticket = 0;
  nanoseconds_t deadline = 0;
};

/// Answered by `call_done`.
struct wake {
  ticket_id ticket = 0;
};

/// Answered by `explain_answer`.
struct explain {
  ticket_id ticket = 0;
  request_id request = 0;
};

// -- from workers -------------------------------------------------------------

/// The sender has registered its memory and takes plans from now on.
struct worker_ready {
  rank_id rank = 0;
  incarnation_id incarnation = 0;
  std::uint64_t slots = 0;
  /// Makes its copies. Null if these end with the sender, or if nobody here can
  /// know when they end.
  caf::strong_actor_ptr device{};
  /// The sender is in another process: its end may only be that of the
  /// connection, and its copies go on. They are over when it says so after it
  /// came back, or when a later life of the rank is ready.
  bool remote = false;
  /// Counts what a remote sender says like this. Answered by `seat`.
  std::uint32_t call = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, worker_ready& x) {
  return f(caf::meta::type_name("worker_ready"), x.rank, x.incarnation, x.slots,
           x.device, x.remote, x.call);
}

/// Chunks that were in the sender's host pool when it started: it outlived an
/// earlier life of the rank. Comes before `worker_ready`, in any number of
/// parts; what no part names is gone.
struct chunks_kept {
  rank_id rank = 0;
  incarnation_id incarnation = 0;
  struct chunk {
    slot_id slot = 0;
    /// `core::wide_digest_of` its key.
    std::uint64_t digest_low = 0;
    std::uint64_t digest_high = 0;
  };
  std::vector<chunk> chunks;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, chunks_kept::chunk& x) {
  return f(caf::meta::type_name("chunk"), x.slot, x.digest_low, x.digest_high);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, chunks_kept& x) {
  return f(caf::meta::type_name("chunks_kept"), x.rank, x.incarnation,
           x.chunks);
}

/// How far a worker of another process has come with its plans: the scheduler
/// stops planning stores for a rank that falls behind (CNT-02).
struct steps_taken {
  rank_id rank = 0;
  incarnation_id incarnation = 0;
  /// The last one whose plan arrived.
  step_id step = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, steps_taken& x) {
  return f(caf::meta::type_name("steps_taken"), x.rank, x.incarnation, x.step);
}

/// The sender's memory is about to go: jobs fail until it is ready again.
struct worker_left {
  rank_id rank = 0;
  incarnation_id incarnation = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, worker_left& x) {
  return f(caf::meta::type_name("worker_left"), x.rank, x.incarnation);
}

/// How a job ended on one rank.
struct transfer_done {
  job_id job = 0;
  rank_id rank = 0;
  incarnation_id incarnation = 0;
  job_status status = job_status::done;
  /// Index of the first row that is not complete; only if `failed` or `late`.
  std::uint32_t first_failed_row = 0;
  /// Answers `report_again`: it may have been said before.
  bool again = false;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, transfer_done& x) {
  return f(caf::meta::type_name("transfer_done"), x.job, x.rank, x.incarnation,
           x.status, x.first_failed_row, x.again);
}

/// Jobs ended on one rank, in this order. Nothing else comes from a worker
/// (S10).
struct transfers_done {
  std::vector<transfer_done> reports;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, transfers_done& x) {
  return f(caf::meta::type_name("transfers_done"), x.reports);
}

/// Answers `tick`.
struct ticked {
  rank_id rank = 0;
  incarnation_id incarnation = 0;
  /// When something happens next on this rank.
  nanoseconds_t next_due = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ticked& x) {
  return f(caf::meta::type_name("ticked"), x.rank, x.incarnation, x.next_due);
}

// -- from requests ------------------------------------------------------------

/// Answers `plan_store`.
struct store_offer {
  turn_id turn = 0;
  request_id request = 0;
  core::store_plan plan;
};

/// Answers `plan_load`.
struct load_offer {
  turn_id turn = 0;
  request_id request = 0;
  /// Slots are not known yet.
  std::vector<job_row> rows;
};

// -- from the cache manager ---------------------------------------------------

/// Answers `search`, one per query.
struct search_result {
  turn_id turn = 0;
  std::vector<core::search_answer> answers;
};

/// Answers `prepare_stores`, one per offer.
struct stores_prepared {
  turn_id turn = 0;
  /// Come back to who made them. Empty if nothing was granted.
  std::vector<core::store_offer> offers;
  std::vector<core::store_grant> grants;
};

/// Answers `prepare_load`.
struct load_prepared {
  turn_id turn = 0;
  core::load_grant grant;
};

/// Answers `complete_job` for a failed store: chunks that others had skipped.
struct rolled_back {
  turn_id turn = 0;
  std::vector<core::chunk_ref> skipped;
};

/// Answers `drain_events`.
struct cache_events {
  turn_id turn = 0;
  std::vector<cache_event> events;
};

/// Answers `get_pool_report`.
struct pool_report {
  turn_id turn = 0;
  core::pool_state state;
  std::uint64_t slots = 0;
  std::uint64_t evicted_chunks = 0;
  std::uint64_t stored_chunks = 0;
  std::uint64_t loaded_chunks = 0;
};

/// Answers `explain_keys`.
struct explained {
  turn_id turn = 0;
  core::explanation what;
};

/// Answers `lookup_keys`.
struct key_states {
  std::vector<core::host_pool::presence> states;
};

} // namespace kvtide::msg

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::add)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::extend)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::lookup)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::decline)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::allocate)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::step)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::outputs)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::truncate)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::finish)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::reset)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::get_stats)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::get_snapshot)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::take_events)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::shutdown)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::advance)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::sleep)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::wake)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::explain)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::store_offer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::load_offer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::search_result)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::stores_prepared)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::load_prepared)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::rolled_back)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::cache_events)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::pool_report)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::explained)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::key_states)

namespace kvtide {

/// What the engine may say.
using scheduler_engine_port = caf::typed_actor<
  caf::reacts_to<msg::add>, caf::reacts_to<msg::extend>,
  caf::reacts_to<msg::lookup>, caf::reacts_to<msg::decline>,
  caf::reacts_to<msg::allocate>, caf::reacts_to<msg::step>,
  caf::reacts_to<msg::outputs>, caf::reacts_to<msg::truncate>,
  caf::reacts_to<msg::finish>, caf::reacts_to<msg::reset>,
  caf::reacts_to<msg::get_stats>, caf::reacts_to<msg::get_snapshot>,
  caf::reacts_to<msg::take_events>, caf::reacts_to<msg::shutdown>,
  caf::reacts_to<msg::advance>, caf::reacts_to<msg::sleep>,
  caf::reacts_to<msg::wake>, caf::reacts_to<msg::explain>>;

/// What a worker may say.
using scheduler_worker_port = caf::typed_actor<
  caf::reacts_to<msg::worker_ready>, caf::reacts_to<msg::worker_left>,
  caf::reacts_to<msg::transfers_done>, caf::reacts_to<msg::ticked>,
  caf::reacts_to<msg::steps_taken>, caf::reacts_to<msg::chunks_kept>>;

/// What a request may say.
using scheduler_request_port
  = caf::typed_actor<caf::reacts_to<msg::store_offer>,
                     caf::reacts_to<msg::load_offer>>;

/// What the cache manager may say.
using scheduler_cache_port = caf::typed_actor<
  caf::reacts_to<msg::search_result>, caf::reacts_to<msg::stores_prepared>,
  caf::reacts_to<msg::load_prepared>, caf::reacts_to<msg::rolled_back>,
  caf::reacts_to<msg::cache_events>, caf::reacts_to<msg::pool_report>,
  caf::reacts_to<msg::explained>, caf::reacts_to<msg::key_states>>;

/// Decides everything (S10): what is loaded, stored, flushed, and for whom.
using scheduler_actor = scheduler_engine_port::extend_with<
  scheduler_worker_port>::extend_with<scheduler_request_port>::
  extend_with<scheduler_cache_port>::extend<caf::reacts_to<msg::timer>>;

} // namespace kvtide
