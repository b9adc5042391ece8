// SPDX-License-Identifier: Apache-2.0

/// @file
/// How jobs end.

#include "actors/scheduler.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace kvtide {

namespace {

std::string text_of(const msg::transfer_done& x) {
  return "job " + std::to_string(x.job) + ", rank " + std::to_string(x.rank)
       + ", incarnation " + std::to_string(x.incarnation);
}

} // namespace

// -- reports ------------------------------------------------------------------

void scheduler_state::on(msg::transfers_done& x) {
  counters.late_messages
    += std::erase_if(x.reports, [this](const msg::transfer_done& report) {
         return is_cut_off(report.rank);
       });
  // While simulated time moves, reports are gathered and put in order.
  if (auto* tick = std::get_if<advance_phase>(&phase); tick != nullptr) {
    tick->reports.insert(tick->reports.end(), x.reports.begin(),
                         x.reports.end());
    return;
  }
  completions.jobs.reserve(x.reports.size());
  push_all(x.reports);
}

void scheduler_state::start(msg::transfer_done& x) {
  if (x.rank >= ranks.size() || ranks[x.rank].incarnation < x.incarnation)
    return order.breach(core::order_rule::s12,
                        "a report of another life of a rank came", text_of(x));
  if (ranks[x.rank].incarnation > x.incarnation || !ranks[x.rank].alive) {
    // On its way when the rank died: its jobs have their outcomes (S9).
    counters.late_messages += 1;
    return;
  }
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
      if (x.again)
        return; // The first one had only been slow.
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

msg::complete_job
scheduler_state::completion_of(const core::tracked_job& entry) {
  auto out = msg::complete_job{};
  out.kind = entry.work.kind;
  out.rows = entry.work.rows;
  out.ok = entry.ok();
  return out;
}

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
  auto out = completion_of(entry);
  out.still_copying = entry.late > 0;
  out.moved = last_keys(find(entry.work.request), id);
  slots_gained = true;
  if (entry.ok()) {
    tell_cache(std::move(out));
    leave_request(entry);
    erase_job(id);
  } else {
    phase = rollback_phase{id};
    out.turn = turn;
    auto failed = msg::complete_jobs{};
    failed.jobs.push_back(std::move(out));
    ask_cache(std::move(failed)); // Whom else does it concern?
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
    auto out = completion_of(entry);
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
  const auto& parts = entry.work.rows;
  out.first_bad_token = local;
  if (!shape->any_sliding) {
    out.first_bad_token = no_cap;
    for (auto i = std::size_t{entry.first_failed_row}; i < parts.size(); ++i)
      out.first_bad_token
        = std::min(out.first_bad_token,
                   static_cast<token_count>(parts[i].chunk)
                     * shape->groups[parts[i].key.group].chunk_tokens);
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
    tell_cache(completion_of(entry));
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

} // namespace kvtide
