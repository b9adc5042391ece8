// SPDX-License-Identifier: Apache-2.0

/// @file
/// A worker whose scheduler is in another process.
///
/// The scheduler comes by `attach` and goes when its connection is lost. What
/// happens then follows from one sentence: the scheduler holds every job that
/// this rank owes for late, so that none may start any more, and those that run
/// are asked for when it is back (`report_again`). Steps go on without plans:
/// each waits for all copies, as nobody says which ones it depends on.
///
/// When the scheduler is back, it says which step is the first that it plans
/// for this rank (`seat::first_planned`). The rank side may be behind that one:
/// it is led there step by step, as it asks for them. From then on plans run
/// ahead as they do inside one process.

#include "actors/gpu_worker.hpp"
#include "actors/log.hpp"
#include "core/call_faults.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace kvtide {

// -- connections --------------------------------------------------------------

void gpu_worker_state::attach(const msg::attach& x) {
  if (!config.remote || !x.scheduler)
    return;
  // The other side has noticed the end of the last connection first.
  if (scheduler)
    leave_scheduler();
  scheduler = caf::actor_cast<scheduler_worker_port>(x.scheduler);
  self->monitor(scheduler);
  if (epoch && (epoch != x.epoch || config.incarnation != x.incarnation)) {
    copies_of_before = ledger.size() > 0;
    outcomes = {};
    skipped.reset();
    begun_alone = false;
  }
  epoch = x.epoch;
  config.incarnation = x.incarnation;
  say_worker_ready();
}

void gpu_worker_state::seat(const msg::seat& x) {
  if (x.call != calls || !is_said_by_scheduler())
    return note_late();
  if (x.refusal.empty()) {
    if (!std::exchange(takes_part, true)) {
      first_planned = x.first_planned;
      caught_up = first_planned == 0;
    }
    return take_awaited();
  }
  log().error("rank {}: the scheduler does not take this rank: {}", config.rank,
              x.refusal);
  tell_rank({ec::scheduler_unreachable, x.refusal});
  go_on_alone();
}

bool gpu_worker_state::is_said_by_scheduler() const {
  const auto& sender = self->current_sender();
  return introduced && sender
      && sender.get()
           == caf::actor_cast<caf::strong_actor_ptr>(scheduler).get();
}

bool gpu_worker_state::is_from_scheduler() {
  if (!config.remote || (takes_part && is_said_by_scheduler()))
    return true;
  note_late();
  return false;
}

void gpu_worker_state::note_late() {
  if (late_messages++ == 0)
    log().info("rank {}: a message came from a connection that is over; "
               "further ones are only counted",
               config.rank);
}

void gpu_worker_state::scheduler_lost() {
  log().warn("rank {}: the scheduler cannot be reached: steps go on without "
             "the cache ({} copies in flight)",
             config.rank, ledger.size());
  tell_rank(core::steps_alone());
  leave_scheduler();
}

void gpu_worker_state::leave_scheduler() {
  self->demonitor(scheduler.address());
  scheduler = nullptr;
  go_on_alone();
}

void gpu_worker_state::go_on_alone() {
  introduced = takes_part = false;
  ledger.make_all_late();
  fail(std::exchange(deferred, {}));
  drop_held();
  for (const auto& plan : std::exchange(early, {}))
    fail(plan.jobs);
  unsent.reports.clear();
  arrived.reset();
  path = {};
  first_planned = 0;
  caught_up = false;
  tick_lost = true;
  take_awaited();
  let_copies_end();
}

void gpu_worker_state::say_worker_ready() {
  auto ready = msg::worker_ready{config.rank, config.incarnation, slots};
  if (config.remote) {
    if (!scheduler || memory != memory_state::registered || copies_of_before)
      return;
    introduced = true;
    ready.call = ++calls;
    ready.remote = true; // A device cannot be watched from there.
  } else {
    ready.device = caf::actor_cast<caf::strong_actor_ptr>(device);
  }
  say_kept();
  self->send(scheduler, std::move(ready));
}

void gpu_worker_state::say_kept() {
  // Of a first life nobody knows what was in its pool.
  if (config.incarnation == 0)
    return;
  constexpr std::size_t in_a_part = 1600; // Of 20 bytes each: 32 KiB.
  auto part = msg::chunks_kept{config.rank, config.incarnation, {}};
  for (std::size_t i = 0; i < kept_chunks.size(); ++i) {
    const auto& x = kept_chunks[i];
    part.chunks.push_back({x.slot, x.digest_low, x.digest_high});
    if (part.chunks.size() < in_a_part && i + 1 < kept_chunks.size())
      continue;
    self->send(scheduler, part);
    part.chunks.clear();
  }
}

void gpu_worker_state::say_how_far() {
  if (config.remote && *arrived % steps_per_sign == 0)
    self->send(scheduler,
               msg::steps_taken{config.rank, config.incarnation, *arrived});
}

// -- steps --------------------------------------------------------------------

void gpu_worker_state::take_awaited() {
  for (const auto& req : std::exchange(unanswered, {}))
    await_step(req);
  run_held_plans();
}

void gpu_worker_state::note_awaited(step_id step) {
  const auto is_open = begun == step && !ended;
  const auto is_known = !awaited.empty() && awaited.back() == step;
  if (!config.remote || is_open || is_known)
    return;
  if (!awaited.empty() && step < awaited.back())
    awaited.clear(); // A new engine begins anew, and asks no more for those.
  awaited.push_back(step);
}

bool gpu_worker_state::run_next_asked() {
  if (awaited.empty())
    return false;
  const auto step = awaited.front();
  drop_held_before(step);
  if (held.empty() && !is_alone() && !is_missed(step) && will_come(step))
    return false;
  caught_up = !held.empty() && held.front().step == step;
  if (caught_up)
    return run_next();
  caught_up = step + 1 == first_planned && will_come(step + 1);
  awaited.pop_front();
  begin_alone(step);
  return true;
}

bool gpu_worker_state::will_come(step_id step) const {
  if (!held.empty())
    return held.front().step <= step;
  return !arrived || *arrived < step;
}

void gpu_worker_state::begin_alone(step_id step) {
  begun = step;
  lap = lap ? *lap + 1 : step;
  ended = false;
  begun_alone = true;
  const auto running = ledger.ids();
  if (checks)
    checks->begun(*lap, running);
  awaiting_fence = !running.empty();
  if (awaiting_fence)
    self->send(device, msg::make_fence{*lap, running, skipped});
  else
    say_ready({});
}

void gpu_worker_state::drop_held_before(step_id step) {
  while (!held.empty() && held.front().step < step) {
    drop(held.front());
    held.pop_front();
  }
}

void gpu_worker_state::drop_held() {
  for (const auto& plan : std::exchange(held, {}))
    drop(plan);
}

void gpu_worker_state::drop(const held_plan& plan) {
  if (checks)
    checks->leaving();
  fail(plan.flushed_stores);
  fail(plan.loads);
  fail(plan.stores);
}

// -- simulated time -----------------------------------------------------------

void gpu_worker_state::let_copies_end() {
  if (!config.virtual_time || target || ledger.size() == 0)
    return;
  target = now;
  tick_device();
}

} // namespace kvtide
