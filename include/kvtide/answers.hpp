// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the runtime says to the engine: answers carry the ticket of their call,
/// notices come unasked.

#pragma once

#include "kvtide/cache_event.hpp"
#include "kvtide/error.hpp"
#include "kvtide/explain.hpp"
#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace kvtide {

/// Answer for one request of a lookup.
struct lookup_hit {
  request_id request = 0;
  /// True: ask again in a later step; `tokens` has no meaning then.
  bool ask_again = false;
  /// Tokens beyond `local` that can be loaded.
  token_count tokens = 0;
  /// What is held until the load; zero if nothing is.
  promise_id promise = 0;
};

/// Answers `lookup`, in the order of the call's rows.
struct lookup_answer {
  ticket_id ticket = 0;
  std::vector<lookup_hit> hits;
};

/// Answers `step`.
struct step_plan {
  ticket_id ticket = 0;
  step_id step = 0;
  /// Ascending by id.
  std::vector<job> loads;
  /// Ascending by id.
  std::vector<job> stores;
  /// Store jobs that each rank completes before this step's compute writes.
  std::vector<job_id> flush;
  /// Some job is in flight: keep stepping, or rely on S13.
  bool pending_work = false;
  /// With `plan_delivery::by_engine`: the plan for each rank's `begin_step`.
  /// Empty if `options::host_bytes` is zero.
  std::string bytes;
};

/// Answers `finish`.
struct finish_answer {
  ticket_id ticket = 0;
  request_id request = 0;
  /// Blocks that a load may still write; free them on `blocks_released`. All
  /// other blocks of the request are free now. Those that a `load_failed` with
  /// `use_new_blocks` has named are here again unless they were released since.
  std::vector<block_id> held;
};

/// Counters since the start, and what is there now.
struct stats {
  // -- now --------------------------------------------------------------------
  std::uint64_t tracked_requests = 0;
  std::uint64_t jobs_in_flight = 0;
  std::uint64_t host_slots = 0;
  std::uint64_t free_slots = 0;
  /// Slots that nobody may use until a late copy ended.
  std::uint64_t quarantined_slots = 0;
  /// Slots pinned by loads in flight.
  std::uint64_t pinned_slots = 0;
  /// Slots held by promises.
  std::uint64_t held_slots = 0;
  /// Slots that are being written.
  std::uint64_t writing_slots = 0;
  /// Blocks whose reuse is watched.
  std::uint64_t watched_blocks = 0;
  /// Entries of the sliding-window index.
  std::uint64_t sliding_entries = 0;
  // -- since the start --------------------------------------------------------
  std::uint64_t steps = 0;
  std::uint64_t lookups = 0;
  std::uint64_t deferrals = 0;
  std::uint64_t hit_tokens = 0;
  std::uint64_t store_jobs = 0;
  std::uint64_t load_jobs = 0;
  std::uint64_t failed_jobs = 0;
  std::uint64_t stored_chunks = 0;
  std::uint64_t loaded_chunks = 0;
  std::uint64_t evicted_chunks = 0;
  /// Store offers, or parts of them, that the pool had no room for.
  std::uint64_t refused_stores = 0;
  /// Jobs named in flush sets.
  std::uint64_t flushed_jobs = 0;
  std::uint64_t resets = 0;
  /// Violations of the protocol or of S1-S13 that were counted and ignored.
  std::uint64_t order_errors = 0;
  /// The same by rule: index 0 counts wrong calls and reports of the engine and
  /// the ranks (R10), index n breaches of Sn. What a rank counts itself is in
  /// its `rank_stats`.
  std::array<std::uint64_t, 14> order_errors_by_rule{};
  /// Messages of a rank's earlier lives and connections, ignored, by report.
  std::uint64_t late_messages = 0;
  /// Requests that go on without the cache, as their actor died.
  std::uint64_t lost_requests = 0;
  /// Times the host pool's book was lost, see `cache_lost`. The counts of
  /// stored, loaded and evicted chunks begin again then.
  std::uint64_t lost_caches = 0;
};

/// Answers `get_stats`.
struct stats_answer {
  ticket_id ticket = 0;
  stats values;
};

/// Answers `take_events`.
struct events_answer {
  ticket_id ticket = 0;
  std::vector<cache_event> events;
};

/// Answers `reset`, `advance`, `sleep`, `wake` and `shutdown`: done, or what is
/// still in flight.
struct call_done {
  ticket_id ticket = 0;
  std::vector<job_id> in_flight;
};

/// A call that had no effect. The sentence says what to do.
struct call_failed {
  /// Zero if the call got no ticket: another thread was in a call.
  ticket_id ticket = 0;
  request_id request = 0;
  error reason;
};

/// The blocks of a load may be read by compute from now on (S7).
struct load_done {
  request_id request = 0;
  job_id job = 0;
};

/// A load failed: the request recomputes from `first_bad_token` on (R8).
struct load_failed {
  request_id request = 0;
  job_id job = 0;
  token_count first_bad_token = 0;
  /// The load's blocks.
  std::vector<block_id> blocks;
  /// A copy may still write `blocks`: recompute into new ones, and free these
  /// on `blocks_released`. They no longer belong to the request, so an answer
  /// to `finish` that comes later does not free them.
  bool use_new_blocks = false;
};

/// Blocks that `finish_answer::held` or `load_failed` named are free now.
struct blocks_released {
  request_id request = 0;
  std::vector<block_id> blocks;
};

/// A rank died: its jobs fail, nothing is stored or found. Steps go to the
/// ranks that are left; an engine whose ranks need each other waits until all
/// that it lost are back.
struct rank_lost {
  rank_id rank = 0;
  incarnation_id incarnation = 0;
};

/// This life of a rank takes part from the next step on.
struct rank_back {
  rank_id rank = 0;
  incarnation_id incarnation = 0;
  /// It is the life that was lost: only the connection was. What the host pool
  /// has stays, and so does the rank's GPU memory. Otherwise the rank's GPU
  /// memory is new, and of the host pool only what its memory kept
  /// (`options::pool_name`) is found again.
  bool same_life = false;
};

/// The host pool's book was lost and starts again, empty. As after a reset,
/// jobs in flight still end, and requests store again from their first chunk.
struct cache_lost {};

/// The actor that decides everything has died. No call without an answer gets
/// one any more, and later calls are `call_failed`. Running copies end. Destroy
/// the runtime and start another one.
struct runtime_lost {
  error reason;
};

/// New stores are refused until jobs in flight end; nothing else changes.
struct overload {
  std::uint64_t jobs_in_flight = 0;
};

/// Everything that `runtime::poll` can return.
using engine_event
  = std::variant<lookup_answer, step_plan, finish_answer, stats_answer,
                 events_answer, call_done, call_failed, load_done, load_failed,
                 blocks_released, rank_lost, rank_back, overload, cache_lost,
                 runtime_lost, explain_answer>;

/// What compute of a step waits for on one rank.
struct fence {
  enum class kind_t : std::uint8_t {
    /// Nothing to wait for, or it is over already.
    none,
    /// The compute stream waits for `handle`. With `device_kind::host_virtual`
    /// the handle is the simulated moment before which compute must not write.
    /// With `device_kind::cuda` it is a `cudaEvent_t`, recorded already. Tell
    /// every compute stream to wait for it before `end_step` of this step: a
    /// later step, whose `begin_step` is answered only after that, may use the
    /// event again, and it is gone once `kv_unregistered` came (G2). Streams
    /// that were told before do wait.
    event,
  };

  kind_t kind = kind_t::none;
  std::uint64_t handle = 0;
};

/// Answers `rank::register_kv`.
struct kv_registered {
  rank_id rank = 0;
  /// Slots of this rank's host pool.
  std::uint64_t slots = 0;
  std::uint64_t slot_bytes = 0;
  /// Set if the registration was refused.
  error reason;
  /// What the device and the pool got, a sentence each, for a log or a person:
  /// the GPU, the pages, what is slower than it could be. Empty on the host.
  std::vector<std::string> notes;
};

/// Answers `rank::unregister_kv`: no copy can touch the memory any more. Also
/// comes unasked when a rank has died, behind `rank_failed` with
/// `ec::rank_unavailable`: from then on `runtime::restart_rank` works.
struct kv_unregistered {
  rank_id rank = 0;
};

/// Compute of the step may be enqueued, behind the fence (S5).
struct step_ready {
  rank_id rank = 0;
  step_id step = 0;
  fence wait_for;
};

/// A call of the rank side that had no effect; with `ec::rank_unavailable` the
/// end of the rank, after which no `step_ready` comes; or with
/// `ec::scheduler_unreachable`, at a `worker` only, a notice: calls work on.
struct rank_failed {
  rank_id rank = 0;
  error reason;
};

/// Answers `rank::get_stats`. Counters of this rank since its start, its device
/// included.
struct rank_stats {
  rank_id rank = 0;
  /// As `stats::order_errors`, of what this rank saw.
  std::uint64_t order_errors = 0;
  /// As `stats::order_errors_by_rule`.
  std::array<std::uint64_t, 14> order_errors_by_rule{};
  /// Jobs that missed their deadline.
  std::uint64_t late_jobs = 0;
  std::uint64_t failed_jobs = 0;
  /// Bytes that ended jobs copied, failed ones included.
  std::uint64_t copied_bytes = 0;
  /// Wall time that copying them took, summed over the device's streams. No
  /// time between jobs, and nothing that `options::copy_latency` and
  /// `copy_bytes_per_second` add; with `device_kind::host_virtual` the real
  /// time of the same copies.
  std::chrono::nanoseconds copy_time{0};
  /// Messages and plans of a scheduler in another process that came after the
  /// connection they belong to was over: ignored.
  std::uint64_t late_messages = 0;
};

/// Everything that `rank::poll` can return.
using rank_event = std::variant<kv_registered, kv_unregistered, step_ready,
                                rank_failed, rank_stats>;

} // namespace kvtide
