// SPDX-License-Identifier: Apache-2.0

/// @file
/// What takes its turn in the scheduler's queue, and what the item in progress
/// remembers while it waits for answers.

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include "core/cache.hpp"
#include "core/kept_parts.hpp"
#include "core/key_list.hpp"
#include "core/short_list.hpp"
#include "core/store_offer.hpp"
#include "messages/engine.hpp"
#include "messages/gpu_worker.hpp"
#include "messages/scheduler.hpp"

#include <cstddef>
#include <set>
#include <variant>
#include <vector>

namespace kvtide {

// -- what waits in the queue besides the engine's calls -----------------------

/// A worker joined.
struct rank_joined {
  msg::worker_ready ready;
  gpu_worker_actor worker;
  /// Counts what workers of this rank say like this, in order of arrival.
  std::uint64_t join = 0;
  /// What it found in its host pool.
  std::vector<core::kept_chunk> kept;
};

/// A worker died.
struct rank_gone {
  rank_id rank = 0;
  /// The last `rank_joined::join` that it was: another worker may have taken
  /// its place before this takes its turn.
  std::uint64_t join = 0;
};

/// The device of a worker that died is gone too: of these jobs no copy runs any
/// more on this rank.
struct device_gone {
  rank_id rank = 0;
  std::vector<job_id> jobs;
};

/// The cache manager died.
struct cache_gone {};

/// What a rank that died cannot say any more.
struct presumed_report {
  msg::transfer_done report;
};

/// No step came: finished requests are planned without one (S13).
struct idle_plan {};

/// What the engine's `sleep` begins with is done.
struct fall_asleep {
  ticket_id ticket = 0;
  nanoseconds_t deadline = 0;
};

/// A sub-step of simulated time has ended; go on.
struct advance_on {
  ticket_id ticket = 0;
  nanoseconds_t target = 0;
};

/// Everything that takes effect one after the other (S1).
using scheduler_item
  = std::variant<msg::add, msg::extend, msg::lookup, msg::decline,
                 msg::allocate, msg::step, msg::outputs, msg::truncate,
                 msg::finish, msg::reset, msg::get_stats, msg::get_snapshot,
                 msg::take_events, msg::shutdown, msg::advance, msg::sleep,
                 msg::wake, msg::explain, msg::transfer_done, presumed_report,
                 rank_joined, msg::worker_left, rank_gone, device_gone,
                 cache_gone, idle_plan, fall_asleep, advance_on>;

// -- the item in progress -----------------------------------------------------

struct request_row;

struct lookup_phase {
  ticket_id ticket = 0;
  /// One per row of the call.
  std::vector<lookup_hit> hits;
  /// Those that are searched, in order.
  std::vector<std::size_t> searched;
  std::vector<promise_id> promises;
};

struct allocate_phase {
  request_id request = 0;
  /// The request has said what the load reads.
  bool offered = false;
  token_count total = 0;
  std::vector<job_row> rows;
};

struct step_phase {
  /// A request that may have something to store.
  struct participant {
    request_id request = 0;
    /// Stays until the step ends.
    request_row* row = nullptr;
    bool answered = false;
    /// Per group: chunks below the clamp.
    core::per_group<std::size_t> storable;
  };

  step_plan plan;
  /// Planned without the engine (S13): no `begin_step`, no answer.
  bool idle = false;
  /// `begin_step` waits for the plan, as a job of this step may be in its own
  /// flush set.
  bool begin_late = false;
  std::vector<participant> participants;
  /// What each of them offers; while the pool is asked, it has those that are
  /// not empty.
  std::vector<core::store_offer> offers;
  /// Participants whose request actors have not answered.
  std::size_t missing = 0;
  /// Keys of those that were preempted or have finished (R12).
  std::vector<core::per_group<core::key_view>> moved;
  /// Whose offers the pool was asked about: indices in `participants`.
  std::vector<std::size_t> offered;
  std::set<job_id> flush;
  std::vector<request_id> finished;
};

struct rollback_phase {
  job_id id = 0;
};

struct report_phase {
  ticket_id ticket = 0;
  bool snapshot = false;
};

struct events_phase {
  ticket_id ticket = 0;
};

struct explain_phase {
  explain_answer answer;
  miss_reason obstacle = miss_reason::none;
};

struct advance_phase {
  ticket_id ticket = 0;
  nanoseconds_t target = 0;
  /// Ranks that have not answered the present tick.
  std::set<rank_id> awaited;
  nanoseconds_t next_due = 0;
  std::vector<msg::transfer_done> reports;
};

using scheduler_phase
  = std::variant<std::monostate, lookup_phase, allocate_phase, step_phase,
                 rollback_phase, report_phase, events_phase, explain_phase,
                 advance_phase>;

} // namespace kvtide
