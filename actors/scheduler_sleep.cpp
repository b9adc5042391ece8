// SPDX-License-Identifier: Apache-2.0

/// @file
/// The engine gives its GPU memory back for a while: from `sleep` to `wake`.

#include "actors/scheduler.hpp"
#include "core/call_faults.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace kvtide {

void scheduler_state::start(msg::sleep& x) {
  if (asleep)
    return fail(x.ticket, 0, core::asleep_already());
  auto next = fall_asleep{
    x.ticket, later_by(clock_now(), std::max<nanoseconds_t>(0, x.deadline))};
  if (finishing.empty() || opts.delivery != plan_delivery::direct)
    return start(next);
  // Who finished before it has a tail to store (S2, S13).
  auto items = std::vector<scheduler_item>{};
  items.push_back(idle_plan{});
  items.push_back(next);
  push_front(std::move(items));
}

void scheduler_state::start(fall_asleep& x) {
  asleep = true;
  sleeping = stop_call{x.ticket, x.deadline};
  for (auto i = rows.begin(); i != rows.end(); ++i) {
    release_promise(*i.value());
    empty_tables(i.key(), *i.value()); // R3: the blocks are gone.
  }
  if (stepped) // S13: what waits for a next step goes now.
    broadcast(msg::pause{last_step});
  auto items = std::vector<scheduler_item>{};
  fail_unheard_loads(items);
  if (!finishing.empty())
    items.push_back(idle_plan{});
  push_front(std::move(items));
  arm_timer();
  maybe_slept();
}

void scheduler_state::start(msg::wake& x) {
  if (!asleep)
    return fail(x.ticket, 0, core::not_asleep());
  // Those of other processes are not waited for: they join when they can.
  for (rank_id r = 0; r < ranks.size(); ++r)
    if (const auto& seat = ranks[r];
        !seat.remote && (!seat.alive || !seat.registered))
      return fail(x.ticket, 0, core::rank_not_ready(r, !seat.alive));
  if (sleeping)
    answer_sleep();
  asleep = false;
  answer(call_done{x.ticket, {}});
}

void scheduler_state::maybe_slept() {
  if (sleeping && (has_no_jobs() || clock_now() >= sleeping->deadline))
    answer_sleep();
}

void scheduler_state::answer_sleep() {
  auto out = call_done{sleeping->ticket, {}};
  sleeping.reset();
  for (const auto& [id, entry] : jobs.all())
    out.in_flight.push_back(id);
  self->send(engine, std::move(out));
}

bool scheduler_state::has_no_jobs() const {
  // A step in progress may be about to store a tail.
  return jobs.all().empty() && finishing.empty()
      && !std::holds_alternative<step_phase>(phase);
}

} // namespace kvtide
