// SPDX-License-Identifier: Apache-2.0

/// @file
/// What happens because time has passed: idle plans, silent ranks, the end of a
/// shutdown, and simulated time.

#include "actors/scheduler.hpp"
#include "core/call_faults.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace kvtide {

namespace {

/// A rank reports a job when it is late at the latest; as long again is for
/// steps and connections that are slow.
nanoseconds_t longest_silence(const options& opts) {
  return 2 * std::chrono::nanoseconds{opts.job_deadline}.count();
}

} // namespace

// -- the clock ----------------------------------------------------------------

nanoseconds_t scheduler_state::clock_now() const {
  if (opts.device == device_kind::host_virtual)
    return now;
  return self->clock().now().time_since_epoch().count();
}

nanoseconds_t scheduler_state::own_due() const {
  return std::min({idle_due, reports_due, stopping ? stopping->deadline : never,
                   sleeping ? sleeping->deadline : never});
}

void scheduler_state::arm_timer() {
  if (opts.device == device_kind::host_virtual)
    return;
  if (const auto wait = wake_up.set(clock_now(), own_due()))
    self->delayed_send(self, *wait, msg::timer{});
}

void scheduler_state::on_timer() {
  wake_up.rang();
  if (idle_due <= clock_now()) {
    idle_due = never; // Once, however long its turn takes to come.
    push(idle_plan{});
  }
  if (reports_due <= clock_now())
    ask_for_reports();
  maybe_stopped();
  arm_timer();
}

void scheduler_state::expect_reports(core::tracked_job& entry) {
  entry.asked = clock_now();
  if (reports_due != never)
    return;
  reports_due = later_by(entry.asked, longest_silence(opts));
  arm_timer();
}

void scheduler_state::ask_for_reports() {
  const auto moment = clock_now();
  const auto patience = longest_silence(opts);
  auto asks = std::vector<msg::report_again>(ranks.size());
  reports_due = never;
  for (const auto& [id, known] : jobs.all()) {
    auto& entry = *jobs.find(id);
    if (later_by(entry.asked, patience) <= moment) {
      entry.asked = moment;
      for (rank_id r = 0; r < ranks.size(); ++r) {
        if (entry.is_silent(r))
          asks[r].silent.push_back(id);
        else if (entry.is_late(r) && !is_orphaned(id, r))
          asks[r].late.push_back(id);
      }
    }
    reports_due = std::min(reports_due, later_by(entry.asked, patience));
  }
  // Loads of which no rank was told yet are nobody's fault.
  const auto spare = [&asks](const std::vector<job>& loads) {
    for (const auto& work : loads)
      for (auto& ask : asks)
        std::erase(ask.silent, work.id);
  };
  spare(waiting_loads);
  if (const auto* step = std::get_if<step_phase>(&phase);
      step != nullptr && step->begin_late)
    spare(step->plan.loads);
  for (rank_id r = 0; r < ranks.size(); ++r) {
    auto& ask = asks[r];
    if (!ranks[r].worker || (ask.silent.empty() && ask.late.empty()))
      continue;
    self->send(ranks[r].worker, std::move(ask));
  }
}

/// Another life of the rank may still copy it, of which this one knows nothing.
bool scheduler_state::is_orphaned(job_id id, rank_id rank) const {
  return std::any_of(orphans.begin(), orphans.end(), [&](const orphan& x) {
    const auto& ids = x.copies.jobs;
    return x.copies.rank == rank
        && std::find(ids.begin(), ids.end(), id) != ids.end();
  });
}

void scheduler_state::maybe_stopped() {
  maybe_slept();
  if (!stopping || (!has_no_jobs() && clock_now() < stopping->deadline))
    return;
  auto out = call_done{stopping->ticket, {}};
  for (const auto& [id, entry] : jobs.all())
    out.in_flight.push_back(id);
  stopping->deadline = never;
  if (stopping->ticket != 0)
    self->send(engine, std::move(out));
  stopping->ticket = 0; // Answered once.
}

// -- simulated time -----------------------------------------------------------

void scheduler_state::start(msg::advance& x) {
  if (auto fault = core::fault_of_advance(opts.device, now, x.now);
      fault.code != ec::none)
    return fail(x.ticket, 0, std::move(fault));
  auto go = advance_on{x.ticket, x.now};
  start(go);
}

void scheduler_state::start(advance_on& x) {
  auto& tick = phase.emplace<advance_phase>();
  tick.ticket = x.ticket;
  tick.target = x.target;
  tick_ranks(tick); // At the present time: what is due next?
}

void scheduler_state::tick_ranks(advance_phase& tick) {
  tick.next_due = own_due();
  for (rank_id r = 0; r < ranks.size(); ++r)
    if (ranks[r].worker)
      tick.awaited.insert(r);
  broadcast(msg::tick{now});
  if (tick.awaited.empty())
    end_tick(tick);
}

void scheduler_state::on(const msg::ticked& x) {
  if (comes_late(x.rank, x.incarnation))
    return;
  auto* tick = std::get_if<advance_phase>(&phase);
  if (tick == nullptr || x.rank >= ranks.size()
      || ranks[x.rank].incarnation != x.incarnation
      || tick->awaited.count(x.rank) == 0)
    return order.breach(core::order_rule::s12,
                        "a rank answered a tick unasked or twice, or in "
                        "another life",
                        "rank " + std::to_string(x.rank) + ", incarnation "
                          + std::to_string(x.incarnation));
  tick->next_due = std::min(tick->next_due, x.next_due);
  rank_ticked(*tick, x.rank);
}

void scheduler_state::rank_ticked(advance_phase& tick, rank_id rank) {
  if (tick.awaited.erase(rank) > 0 && tick.awaited.empty())
    end_tick(tick);
}

void scheduler_state::end_tick(advance_phase& tick) {
  auto items = std::vector<scheduler_item>{};
  std::stable_sort(
    tick.reports.begin(), tick.reports.end(),
    [](const msg::transfer_done& x, const msg::transfer_done& y) {
      return std::tie(x.job, x.rank) < std::tie(y.job, y.rank);
    });
  for (auto& report : tick.reports)
    items.push_back(report);
  if (idle_due <= now)
    items.push_back(idle_plan{});
  if (!items.empty()) {
    items.push_back(advance_on{tick.ticket, tick.target});
    push_front(std::move(items));
    return done();
  }
  if (reports_due <= now) {
    ask_for_reports();
    return tick_ranks(tick); // The answers come before those to the tick.
  }
  maybe_stopped();
  if (now >= tick.target) {
    answer(call_done{tick.ticket, {}});
    return done();
  }
  now = std::clamp(tick.next_due, now, tick.target);
  tick_ranks(tick);
}

} // namespace kvtide
