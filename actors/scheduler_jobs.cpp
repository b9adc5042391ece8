// SPDX-License-Identifier: Apache-2.0

/// @file
/// How jobs end, ranks that come and go, and time.

#include "actors/scheduler.hpp"
#include "core/store_capability.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace kvtide {

namespace {

std::string text_of(const msg::transfer_done& x) {
  return "job " + std::to_string(x.job) + ", rank " + std::to_string(x.rank)
       + ", incarnation " + std::to_string(x.incarnation);
}

/// A rank reports a job when it is late at the latest; as long again is for
/// steps and connections that are slow.
nanoseconds_t longest_silence(const options& opts) {
  return 2 * std::chrono::nanoseconds{opts.job_deadline}.count();
}

} // namespace

// -- reports ------------------------------------------------------------------

void scheduler_state::on_transfer(msg::transfer_done& x) {
  // While simulated time moves, reports are gathered and put in order.
  if (auto* tick = std::get_if<advance_phase>(&phase); tick != nullptr)
    tick->reports.push_back(x);
  else
    push(x);
}

void scheduler_state::start(msg::transfer_done& x) {
  if (x.rank >= ranks.size() || ranks[x.rank].incarnation < x.incarnation)
    return order.breach(core::order_rule::s12,
                        "a report of another life of a rank came", text_of(x));
  if (ranks[x.rank].incarnation > x.incarnation || !ranks[x.rank].alive)
    return; // On its way when the rank died: its jobs have their outcomes (S9).
  take_report(x);
}

void scheduler_state::start(presumed_report& x) {
  take_report(x.report);
}

void scheduler_state::take_report(const msg::transfer_done& x) {
  using effect = core::job_table::effect;
  const auto what = jobs.report(x.job, x.rank, x.status, x.first_failed_row);
  if (checks && what != effect::ignored)
    checks->rank_reported(x.job, x.rank, x.status);
  switch (what) {
    case effect::ignored:
      if (repeats.count({x.job, x.rank}) > 0)
        return; // It was asked for, and had only been slow.
      return order.breach(core::order_rule::s9,
                          "a report came twice, or for an unknown job", // R10
                          text_of(x));
    case effect::counted:
      return;
    case effect::settled:
      return settle(*jobs.find(x.job));
    case effect::drained:
      return end_late_copies(x.job);
  }
}

void scheduler_state::end_late_copies(job_id id) {
  if (checks)
    checks->copies_ended(*jobs.find(id));
  finish_copies(*jobs.find(id));
}

// -- outcomes -----------------------------------------------------------------

void scheduler_state::settle(core::tracked_job& entry) {
  if (checks)
    checks->job_settled(entry);
  counters.failed_jobs += !entry.ok();
  if (entry.work.kind == job_kind::load)
    settle_load(entry);
  else
    settle_store(entry);
}

void scheduler_state::settle_store(core::tracked_job& entry) {
  const auto id = entry.work.id;
  if (entry.stale) { // S11
    if (entry.late == 0)
      finish_copies(entry);
    return;
  }
  unwatch(entry);
  take_effect(id, entry.ok());
  auto out = msg::complete_job{};
  out.turn = turn;
  out.kind = job_kind::store;
  out.keys = entry.keys();
  out.ok = entry.ok();
  out.still_copying = entry.late > 0;
  out.moved = last_keys(find(entry.work.request), id);
  slots_gained = true;
  if (entry.ok()) {
    tell_cache(std::move(out));
    leave_request(entry);
    erase_job(id);
  } else {
    phase = rollback_phase{id};
    ask_cache(std::move(out)); // Whom else does it concern?
  }
}

void scheduler_state::on(msg::rolled_back& x) {
  auto* rollback = in_phase<rollback_phase>(x.turn, "rolled_back");
  if (rollback == nullptr)
    return;
  auto& entry = *jobs.find(rollback->id);
  if (rule->failures_roll_back) { // R8
    for (const auto& row : entry.work.rows)
      roll_back(entry.work.request, row.key.group, row.chunk);
    for (const auto& ref : x.skipped)
      roll_back(ref.request, ref.group, ref.chunk);
  }
  leave_request(entry);
  if (entry.late == 0)
    erase_job(rollback->id);
  done();
}

void scheduler_state::roll_back(request_id id, group_id group,
                                std::size_t chunk) {
  auto* row = find(id);
  if (row == nullptr || row->wish.ending
      || ++row->retries[{group, chunk}] > opts.store_retries)
    return;
  row->next[group] = std::min(row->next[group], chunk);
  refresh_boundary(*row);
}

void scheduler_state::settle_load(core::tracked_job& entry) {
  const auto id = entry.work.id;
  if (entry.late == 0 && !entry.stale) {
    take_effect(id, entry.ok());
    auto out = msg::complete_job{};
    out.turn = turn;
    out.kind = job_kind::load;
    out.keys = entry.keys();
    out.ok = entry.ok();
    out.moved = last_keys(find(entry.work.request), id);
    slots_gained = true;
    tell_cache(std::move(out));
  }
  announce_load_end(entry);
  if (!entry.stale)
    leave_request(entry);
  if (entry.late > 0)
    return; // Slots and blocks stay out of use until `drained`.
  if (entry.stale)
    finish_copies(entry);
  else
    erase_job(id);
}

void scheduler_state::announce_load_end(core::tracked_job& entry) {
  const auto request = entry.work.request;
  if (entry.ok() && !entry.blocks_held) {
    self->send(engine, load_done{request, entry.work.id}); // S7
  } else if (!entry.ok() && !entry.blocks_held) {
    fail_load(entry);
    entry.blocks_held = entry.late > 0;
  } else if (entry.late == 0) {
    self->send(engine, blocks_released{request, entry.blocks()}); // LDL-01
    entry.blocks_held = false;
  }
}

void scheduler_state::fail_load(core::tracked_job& entry) {
  const auto request = entry.work.request;
  auto* row = find(request);
  auto out = load_failed{};
  out.request = request;
  out.job = entry.work.id;
  out.blocks = entry.blocks();
  out.use_new_blocks = entry.late > 0;
  // R8: a window that lacks a part is of no use, so all goes where one slides.
  const auto local = entry.local; // The row may know of a later lookup.
  const auto& rows_ = entry.work.rows;
  out.first_bad_token = local;
  if (!shape->any_sliding) {
    out.first_bad_token = no_cap;
    for (auto i = std::size_t{entry.first_failed_row}; i < rows_.size(); ++i)
      out.first_bad_token
        = std::min(out.first_bad_token,
                   static_cast<token_count>(rows_[i].chunk)
                     * shape->groups[rows_[i].key.group].chunk_tokens);
    out.first_bad_token = out.first_bad_token == no_cap
                          ? local
                          : std::max(out.first_bad_token, local);
  }
  if (row != nullptr && !entry.stale) {
    take_effect(entry.work.id, false);
    for (std::size_t g = 0; g < row->next.size(); ++g)
      row->next[g] = std::min(
        row->next[g], static_cast<std::size_t>(
                        out.first_bad_token / shape->groups[g].chunk_tokens));
    refresh_boundary(*row);
  }
  self->send(engine, std::move(out));
}

void scheduler_state::finish_copies(core::tracked_job& entry) {
  // No copy of this job touches anything any more.
  const auto id = entry.work.id;
  if (entry.stale || entry.work.kind == job_kind::store) {
    if (!entry.stale || entry.slots_kept)
      tell_cache(msg::release_slots{entry.slots()});
  } else {
    take_effect(id, false);
    auto out = msg::complete_job{};
    out.turn = turn;
    out.kind = job_kind::load;
    out.keys = entry.keys();
    out.ok = false;
    tell_cache(std::move(out));
  }
  slots_gained = true;
  if (entry.blocks_held)
    self->send(engine, blocks_released{entry.work.request, entry.blocks()});
  erase_job(id);
}

void scheduler_state::leave_request(const core::tracked_job& entry) {
  auto* row = find(entry.work.request);
  if (row == nullptr)
    return;
  row->jobs.erase(
    std::remove(row->jobs.begin(), row->jobs.end(), entry.work.id),
    row->jobs.end());
  drop_if_over(entry.work.request);
}

void scheduler_state::unwatch(const core::tracked_job& entry) {
  for (const auto& row : entry.work.rows)
    for (auto block : row.blocks)
      watch.remove(block, entry.work.id);
}

void scheduler_state::take_effect(job_id id, bool ok) {
  if (checks)
    checks->outcomes.took_effect(id, ok);
}

void scheduler_state::erase_job(job_id id) {
  if (checks)
    checks->outcomes.erased(id);
  jobs.erase(id);
  maybe_stopped();
}

// -- ranks --------------------------------------------------------------------

void scheduler_state::start(rank_joined& x) {
  const auto rank = x.ready.rank;
  if (rank < ranks.size() && ranks[rank].alive
      && ranks[rank].incarnation == x.ready.incarnation
      && ranks[rank].worker == x.worker)
    return; // Its memory is registered again; its host pool was there all
            // along.
  if (rank < ranks.size() && ranks[rank].alive
      && ranks[rank].incarnation < x.ready.incarnation) {
    // A later life ends the one before, even if that is still to be heard of.
    auto ended = std::vector<scheduler_item>{};
    ended.push_back(rank_gone{rank, ranks[rank].incarnation});
    ended.push_back(std::move(x));
    return push_front(std::move(ended));
  }
  if (rank >= ranks.size() || ranks[rank].alive)
    return wrong_call(
      "a worker joined as a rank that does not exist or is taken",
      "rank " + std::to_string(rank));
  auto& seat = ranks[rank];
  if (x.ready.slots < pool_slots)
    return wrong_call("a worker came back with fewer slots than the pool has",
                      "rank " + std::to_string(rank));
  const auto is_back = seat.joined;
  seat.worker = x.worker;
  seat.device = nullptr;
  seat.incarnation = x.ready.incarnation;
  seat.slots = x.ready.slots;
  seat.joined = seat.alive = true;
  self->monitor(seat.worker);
  if (x.ready.device) {
    seat.device = x.ready.device->address();
    self->monitor(x.ready.device);
  }
  if (is_back) {
    // Its host pool is gone with its old life; no published chunk is whole.
    forget_everything();
    self->send(engine, rank_back{rank, seat.incarnation});
  }
  if (pool_slots > 0 || !ranks_complete())
    return;
  pool_slots = ranks.front().slots; // AGG-04: what every rank has.
  for (const auto& other : ranks)
    pool_slots = std::min(pool_slots, other.slots);
  tell_cache(msg::open_pool{pool_slots});
  slots_gained = true; // Requests that came before the ranks were refused.
}

// -- time ---------------------------------------------------------------------

nanoseconds_t scheduler_state::clock_now() const {
  if (opts.device == device_kind::host_virtual)
    return now;
  return self->clock().now().time_since_epoch().count();
}

nanoseconds_t scheduler_state::own_due() const {
  const auto idle = finishing.empty() ? never : idle_due;
  return std::min({idle, reports_due, stopping ? stopping->deadline : never});
}

void scheduler_state::arm_timer() {
  if (opts.device == device_kind::host_virtual)
    return;
  if (const auto wait = wake_up.set(clock_now(), own_due()))
    self->delayed_send(self, *wait, msg::timer{});
}

void scheduler_state::on_timer() {
  wake_up.rang();
  if (!finishing.empty() && idle_due <= clock_now())
    push(idle_plan{});
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
  repeats.clear();
  for (const auto& [id, known] : jobs.all()) {
    auto& entry = *jobs.find(id);
    if (later_by(entry.asked, patience) <= moment) {
      entry.asked = moment;
      using state = core::tracked_job::rank_state;
      for (rank_id r = 0; r < ranks.size(); ++r) {
        if (entry.ranks[r] == state::silent)
          asks[r].silent.push_back(id);
        else if (entry.ranks[r] == state::late && !is_orphaned(id, r))
          asks[r].late.push_back(id);
      }
    }
    reports_due = std::min(reports_due, later_by(entry.asked, patience));
  }
  // Loads that no step has delivered yet are nobody's fault.
  for (const auto& work : waiting_loads)
    for (auto& ask : asks)
      std::erase(ask.silent, work.id);
  for (rank_id r = 0; r < ranks.size(); ++r) {
    auto& ask = asks[r];
    if (!ranks[r].worker || (ask.silent.empty() && ask.late.empty()))
      continue;
    for (const auto* ids : {&ask.silent, &ask.late})
      for (auto id : *ids)
        repeats.emplace(id, r);
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
  if (!stopping)
    return;
  const auto idle = jobs.all().empty() && finishing.empty();
  if (!idle && clock_now() < stopping->deadline)
    return;
  auto out = call_done{stopping->ticket, {}};
  for (const auto& [id, entry] : jobs.all())
    out.in_flight.push_back(id);
  stopping->deadline = never;
  if (stopping->ticket != 0)
    self->send(engine, std::move(out));
  stopping->ticket = 0; // Answered once.
}

void scheduler_state::start(msg::advance& x) {
  if (opts.device != device_kind::host_virtual)
    return fail(x.ticket, 0, ec::unsupported,
                "time can be advanced only with device_kind::host_virtual");
  if (x.now < now)
    return fail(x.ticket, 0, ec::invalid_argument,
                "simulated time is " + std::to_string(now)
                  + " ns already and does not go back");
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
  if (!finishing.empty() && idle_due <= now)
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
