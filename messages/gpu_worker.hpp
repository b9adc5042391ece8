// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a worker understands: plans from the scheduler, brackets from the rank
/// side, completions from its device.

#pragma once

#include "kvtide/job.hpp"

#include "core/order_log.hpp"
#include "messages/fwd.hpp"
#include "messages/inspect.hpp"
#include "messages/join.hpp"
#include "messages/step_bytes.hpp"
#include "messages/timer.hpp"

#include <caf/meta/type_name.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace kvtide::msg {

// -- from the scheduler -------------------------------------------------------

/// The part of a plan that compute of the step depends on.
struct begin_step {
  step_id step = 0;
  std::vector<job> loads;
  /// Stores of this very step that `flush` names.
  std::vector<job> flushed_stores;
  /// Jobs that must have ended before compute of the step writes (S5).
  std::vector<job_id> flush;
  /// Nobody asks any more how jobs below this id ended.
  job_id settled_below = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, begin_step& x) {
  return inspect_bytes(f, "begin_step", x);
}

/// Stores that were planned in a step and are submitted at the start of the
/// next one (S3), or earlier by the idle rule (S13).
struct stores {
  step_id step = 0;
  std::vector<job> jobs;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, stores& x) {
  return inspect_bytes(f, "stores", x);
}

/// Nothing was heard of these jobs for long: their reports may be lost. Those
/// that have ended are reported again; those that were never heard of fail.
struct report_again {
  /// Without any report.
  std::vector<job_id> silent;
  /// Reported late, and not drained since.
  std::vector<job_id> late;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, report_again& x) {
  return f(caf::meta::type_name("report_again"), x.silent, x.late);
}

/// No step follows this one until the engine wakes: stores that wait for a next
/// step are submitted as soon as its compute is enqueued (S13).
struct pause {
  step_id step = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, pause& x) {
  return f(caf::meta::type_name("pause"), x.step);
}

/// Answers `worker_ready` of a worker in another process. Only from here on it
/// listens to plans: what was sent before may be of a connection whose end the
/// scheduler had not noticed.
struct seat {
  /// `worker_ready::call`
  std::uint32_t call = 0;
  /// Why no plan will come, a sentence; empty if the rank takes part.
  std::string refusal;
  /// Steps before this one were planned without the rank; this one and every
  /// later one have a plan for it. 0 if there was no step yet.
  step_id first_planned = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, seat& x) {
  return f(caf::meta::type_name("seat"), x.call, x.refusal, x.first_planned);
}

/// Simulated time moves to `now`. Answered by `ticked`.
struct tick {
  nanoseconds_t now = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, tick& x) {
  return f(caf::meta::type_name("tick"), x.now);
}

// -- from the rank side -------------------------------------------------------

/// Answered by `kv_registered`.
struct register_kv {
  kv_memory memory;
};

/// Answered by `kv_unregistered`.
struct unregister_kv {};

/// Asks for `step_ready`; carries the plan where the engine delivers it.
struct await_step {
  step_id step = 0;
  std::string plan;
};

/// Compute of the step is enqueued on this rank.
struct end_step {
  step_id step = 0;
  compute_events events;
};

/// Answered by `rank_stats`.
struct get_rank_stats {};

// -- from the device ----------------------------------------------------------

/// A chunk that was in the host pool before its process started.
struct kept_chunk {
  slot_id slot = 0;
  /// `core::wide_digest_of` its key.
  std::uint64_t digest_low = 0;
  std::uint64_t digest_high = 0;
};

/// Answers `register_memory`.
struct memory_registered {
  std::uint64_t slots = 0;
  std::uint64_t slot_bytes = 0;
  /// Set if the memory was refused.
  error reason;
  /// See `kv_registered::notes`.
  std::vector<std::string> notes;
  /// What lies in the pool from an earlier process; only in the first answer.
  std::vector<kept_chunk> kept = {};
};

/// Answers `unregister_memory`.
struct memory_unregistered {};

/// How a copy job ended.
struct copy_done {
  job_id job = 0;
  bool ok = true;
  /// Index of the first row that is not complete; only if not `ok`.
  std::uint32_t first_failed_row = 0;
  /// Why it failed; only if not `ok`.
  std::string text;
};

/// Copy jobs ended on this device, in this order.
struct copies_done {
  std::vector<copy_done> jobs;
  /// Bytes that they copied, failed or not, and the wall time that took.
  std::uint64_t bytes = 0;
  std::chrono::nanoseconds copy_time{0};
};

/// Answers `make_fence`. With a host fence it comes when the fence is over.
struct fence_made {
  step_id step = 0;
  fence wait_for;
};

/// Answers `device_tick`.
struct device_ticked {
  /// When something happens next, or the largest value for never.
  nanoseconds_t next_due = 0;
};

/// The device was asked for something in an order that S1 to S13 exclude. It
/// has told of it; the worker counts for both.
struct device_breach {
  core::order_rule rule = core::order_rule::call;
};

} // namespace kvtide::msg

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::register_kv)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::unregister_kv)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::await_step)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::end_step)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::get_rank_stats)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::memory_registered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::memory_unregistered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::copies_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::fence_made)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::device_ticked)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::device_breach)

namespace kvtide {

/// One per rank. Never decides what is copied, only when (S10).
using gpu_worker_actor = caf::typed_actor<
  // From the scheduler.
  caf::reacts_to<msg::begin_step>, caf::reacts_to<msg::stores>,
  caf::reacts_to<msg::tick>, caf::reacts_to<msg::pause>,
  caf::reacts_to<msg::report_again>, caf::reacts_to<msg::seat>,
  // From the link of its process.
  caf::reacts_to<msg::attach>,
  // From the rank side.
  caf::reacts_to<msg::register_kv>, caf::reacts_to<msg::unregister_kv>,
  caf::reacts_to<msg::await_step>, caf::reacts_to<msg::end_step>,
  caf::reacts_to<msg::get_rank_stats>,
  // From the device.
  caf::reacts_to<msg::memory_registered>,
  caf::reacts_to<msg::memory_unregistered>, caf::reacts_to<msg::copies_done>,
  caf::reacts_to<msg::fence_made>, caf::reacts_to<msg::device_ticked>,
  caf::reacts_to<msg::device_breach>,
  // From itself.
  caf::reacts_to<msg::timer>>;

} // namespace kvtide
