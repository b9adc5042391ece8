// SPDX-License-Identifier: Apache-2.0

/// @file
/// A step of the engine, from its rows to its plan.

#include "actors/scheduler.hpp"

#include "core/store_capability.hpp"
#include "core/store_intent.hpp"
#include "messages/plan_bytes.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace kvtide {

namespace {

bool negative(const step_row& row) {
  return row.computed < 0 || row.scheduled < 0 || row.known < 0;
}

/// Per group: logical index of the first block that is copied.
std::vector<std::uint32_t> first_blocks(const std::vector<job_row>& rows,
                                        const core::layout& shape) {
  auto out = std::vector<std::uint32_t>(shape.groups.size(), 0);
  auto found = std::vector<bool>(shape.groups.size(), false);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.blocks.size(); ++i) {
      if (found[row.key.group] || row.blocks[i] == no_block)
        continue;
      found[row.key.group] = true;
      out[row.key.group] = static_cast<std::uint32_t>(
        row.chunk * shape.blocks_per_chunk + i);
    }
  }
  return out;
}

} // namespace

// -- what the engine says -----------------------------------------------------

void scheduler_state::start(msg::step& x) {
  auto& call = x.call;
  if (stepped && call.step != last_step + 1)
    return fail(x.ticket, 0, ec::out_of_order,
                "step " + std::to_string(call.step) + " came after step "
                  + std::to_string(last_step) + "; count steps up by one");
  stepped = true;
  last_step = call.step;
  idle_due = never;
  counters.steps += 1;
  auto step = step_phase{};
  step.ticket = x.ticket;
  step.plan.ticket = x.ticket;
  step.plan.step = call.step;
  // R10: what is named twice, or is unknown, is ignored from here on.
  auto named = tsl::robin_set<request_id>{};
  const auto once = [&](request_id id) {
    if (named.insert(id).second)
      return true;
    order_error("a step names a request twice");
    return false;
  };
  auto preempted = std::vector<request_id>{};
  for (auto id : call.preempted)
    if (once(id) && find(id) != nullptr)
      preempted.push_back(id);
  const auto unusable = [&](const step_row& row) {
    const auto* known = find(row.request);
    if (!once(row.request) || known == nullptr || known->wish.ending
        || negative(row)
        || (!row.new_blocks.empty()
            && row.new_blocks.size() != shape->groups.size())) {
      order_error("a step schedules a request that is not tracked or has "
                  "finished, or a row of it is malformed");
      return true;
    }
    return false;
  };
  call.rows.erase(std::remove_if(call.rows.begin(), call.rows.end(), unusable),
                  call.rows.end());
  for (const auto& tail : call.finished) {
    auto* row = find(tail.request);
    if (!once(tail.request) || row == nullptr || !row->wish.ending
        || row->closed)
      continue; // Untracked ones may be named (SCHEMA 4.4).
    row->wish.ending = tail.reason;
    row->wish.known = tail.known;
    row->wish.computed = tail.computed;
    step.finished.push_back(tail.request);
  }
  for (auto id : std::exchange(finishing, {})) // S2
    if (std::find(step.finished.begin(), step.finished.end(), id)
        == step.finished.end())
      step.finished.push_back(id);
  // R3: first of all.
  if (rule->preemption_clears_table)
    for (auto id : preempted)
      empty_tables(id, *find(id));
  for (auto& row : call.rows)
    if (row.kind != row_kind::running)
      empty_tables(row.request, *find(row.request));
  for (const auto& row : call.rows)
    for (const auto& group : row.new_blocks)
      for (auto block : group)
        if (block != no_block)
          fresh.insert(block);
  clear_stale_blocks();
  for (auto& row : call.rows)
    take_row(row);
  while (!promises.empty()
         && promises.front().step + opts.promise_steps <= last_step) { // R11
    const auto oldest = promises.front();
    promises.pop_front();
    if (auto* row = find(oldest.request);
        row != nullptr && row->promise == oldest.promise)
      release_promise(*row);
  }
  find_flushes(preempted, step.flush);
  step.plan.loads = std::exchange(waiting_loads, {});
  // Who takes part: only those that have something to say.
  invite_refused(step);
  for (const auto& row : call.rows) {
    const auto& known = *find(row.request);
    if (!known.refused
        && core::wanted_tokens(known.wish, *rule) >= known.boundary)
      invite(step, row.request, true, false);
  }
  for (auto id : step.finished) {
    const auto& row = *find(id);
    const auto offers
      = core::wanted_tokens(row.wish, *rule) >= row.boundary;
    step.begin_late = step.begin_late || offers;
    if (offers || rule->recency_per_admission)
      invite(step, id, offers, rule->recency_per_admission);
  }
  if (rule->recency_per_admission)
    for (auto id : preempted)
      invite(step, id, false, true); // R12
  auto& current = phase.emplace<step_phase>(std::move(step));
  if (!current.begin_late)
    send_begin_step(current, {}); // Before any request is asked.
  ask_participants(current);
}

void scheduler_state::start(idle_plan&) {
  idle_due = never;
  if (finishing.empty())
    return maybe_stopped();
  auto step = step_phase{};
  step.idle = true;
  step.plan.step = last_step;
  step.finished = std::exchange(finishing, {});
  for (auto id : step.finished) {
    const auto& row = *find(id);
    const auto offers = core::wanted_tokens(row.wish, *rule) >= row.boundary;
    if (offers || rule->recency_per_admission)
      invite(step, id, offers, rule->recency_per_admission);
  }
  ask_participants(phase.emplace<step_phase>(std::move(step)));
}

void scheduler_state::take_row(step_row& row) {
  auto& known = *find(row.request);
  known.wish.computed = row.computed;
  known.wish.scheduled = row.scheduled;
  known.wish.known = row.known;
  if (row.kind != row_kind::running) { // An admission ends here.
    known.deferrals = 0;               // R7
    known.accessed = false;            // R12
    release_promise(known);            // R11
  }
  if (row.new_blocks.empty())
    return;
  auto& appended = known.update.appended;
  appended.resize(shape->groups.size());
  for (group_id g = 0; g < row.new_blocks.size(); ++g) {
    const auto& blocks = row.new_blocks[g];
    known.has_table = known.has_table || !blocks.empty();
    appended[g].insert(appended[g].end(), blocks.begin(), blocks.end());
    if (!shape->groups[g].sliding())
      continue;
    for (auto block : blocks) {
      sliding.add(block, {row.request, g, known.sliding[g].size()});
      known.sliding[g].push_back(block);
    }
  }
}

void scheduler_state::clear_stale_blocks() {
  if (!shape->any_sliding)
    return;
  for (auto block : fresh) {
    const auto* found = sliding.places(block);
    if (found == nullptr)
      continue;
    for (const auto& place : std::vector(*found)) {
      auto& row = *find(place.request);
      const auto settled = row.next[place.group] * shape->blocks_per_chunk;
      if (!rule->stale_clearing_covers_whole_table // R9
          && place.position < settled)
        continue;
      row.sliding[place.group][place.position] = no_block;
      row.update.cleared.push_back({place.group, place.position});
      sliding.remove(block, place.request, place.group, place.position);
    }
  }
}

void scheduler_state::find_flushes(const std::vector<request_id>& preempted,
                                   std::set<job_id>& flush) const {
  flush = leftover_flush;
  for (auto id : preempted) {
    const auto& row = *rows.at(id);
    flush.insert(row.jobs.begin(), row.jobs.end()); // PRE-01
  }
  for (auto block : fresh)
    if (const auto* readers = watch.jobs(block); readers != nullptr)
      flush.insert(readers->begin(), readers->end()); // FEN-01
}

// -- what requests and the pool say -------------------------------------------

void scheduler_state::invite(step_phase& step, request_id id, bool offers,
                             bool moves) {
  const auto [i, is_new] = step.place.emplace(id, step.participants.size());
  if (is_new)
    step.participants.push_back({id, offers, moves, {}});
  else
    step.participants[i->second].moves |= moves;
}

void scheduler_state::invite_refused(step_phase& step) {
  if (!std::exchange(slots_gained, false))
    return;
  for (auto id : refused) // R5: before the step's other candidates.
    if (const auto* row = find(id);
        row != nullptr && row->refused && row->has_table && !row->wish.ending)
      invite(step, id, true, false);
}

void scheduler_state::ask_participants(step_phase& step) {
  step.missing = step.participants.size();
  for (const auto& who : step.participants) {
    auto& row = *find(who.request);
    const auto wanted
      = who.offers ? core::wanted_tokens(row.wish, *rule) : token_count{0};
    self->send(row.actor,
               msg::plan_store{step.plan.step, std::exchange(row.update, {}),
                               wanted, row.next});
  }
  if (step.missing == 0)
    end_step(step);
}

void scheduler_state::on(msg::store_offer& x) {
  auto* step = in_phase<step_phase>();
  if (step == nullptr)
    return;
  step->participants[step->place.at(x.offer.request)].answer = std::move(x);
  if (--step->missing == 0)
    ask_pool(*step);
}

void scheduler_state::ask_pool(step_phase& step) {
  auto ask = msg::prepare_stores{step.plan.step, {}, {}};
  const auto paused = stores_paused();
  for (std::size_t i = 0; i < step.participants.size(); ++i) {
    auto& who = step.participants[i];
    auto& row = *find(who.request);
    auto& offer = who.answer.offer;
    if (row.wish.ending)
      row.final_keys = offer.keys; // R12
    if (who.moves)
      ask.moved.push_back(offer.keys);
    if (!who.offers)
      continue;
    auto nothing = core::store_grant{};
    if (offer.candidates.empty()) {
      settle_offer(step, who, nothing);
    } else if (paused) {
      nothing.settled_tokens = 0;
      settle_offer(step, who, nothing);
    } else {
      offer.hit_tokens = row.hit_tokens;
      ask.offers.push_back(offer);
      step.offered.push_back(i);
    }
  }
  if (ask.moved.empty() && ask.offers.empty())
    return end_step(step);
  self->send(cache, std::move(ask));
}

void scheduler_state::on(msg::stores_prepared& x) {
  auto* step = in_phase<step_phase>();
  if (step == nullptr)
    return;
  for (std::size_t i = 0; i < step->offered.size(); ++i)
    settle_offer(*step, step->participants[step->offered[i]], x.grants[i]);
  end_step(*step);
}

void scheduler_state::settle_offer(step_phase& step,
                                   step_phase::participant& who,
                                   core::store_grant& grant) {
  auto& row = *find(who.request);
  if (!grant.accepted.empty())
    make_store(step, who, grant);
  core::advance(*shape, who.answer.storable, grant.settled_tokens, row.next);
  refresh_boundary(row);
  counters.refused_stores += grant.refused();
  if (!rule->store_leading_part)
    return; // Reference: offered again whenever the request is scheduled.
  // R5: a live request waits in order of first refusal; a finished one loses
  // the rest.
  const auto waits = grant.refused() && !row.wish.ending;
  if (waits == row.refused)
    return;
  row.refused = waits;
  if (waits)
    refused.push_back(who.request);
  else
    refused.erase(std::remove(refused.begin(), refused.end(), who.request),
                  refused.end());
}

void scheduler_state::make_store(step_phase& step,
                                 step_phase::participant& who,
                                 const core::store_grant& grant) {
  auto work = job{};
  work.kind = job_kind::store;
  work.request = who.request;
  work.rows.reserve(grant.accepted.size());
  for (const auto& accepted : grant.accepted) {
    const auto& candidate = who.answer.offer.candidates[accepted.candidate];
    work.rows.push_back(
      {candidate.key, accepted.slot, candidate.chunk,
       std::move(who.answer.blocks[accepted.candidate])});
  }
  work.first_block = first_blocks(work.rows, *shape);
  const auto& entry = jobs.add(std::move(work));
  const auto id = entry.work.id;
  auto& row = *find(who.request);
  row.jobs.push_back(id);
  counters.store_jobs += 1;
  for (const auto& r : entry.work.rows)
    if (shape->groups[r.key.group].sliding())
      for (auto block : r.blocks)
        if (block != no_block)
          watch.add(block, id);
  if (row.wish.ending) {
    // Its blocks are free already, and may be somebody's in this very step.
    watch_full_blocks(entry);
    for (const auto& r : entry.work.rows)
      if (!shape->groups[r.key.group].sliding())
        for (auto block : r.blocks)
          if (block != no_block && fresh.count(block) > 0)
            step.flush.insert(id); // FEN-01
  }
  step.plan.stores.push_back(entry.work);
}

bool scheduler_state::stores_paused() {
  const auto full = rule->bound_store_jobs
                    && jobs.running_stores() >= opts.max_store_jobs;
  if (full && !overloaded)
    self->send(engine, overload{jobs.running()});
  overloaded = full;
  return full || !ranks_complete();
}

// -- what the ranks and the engine hear ---------------------------------------

void scheduler_state::send_begin_step(const step_phase& step,
                                      std::vector<job> flushed_stores) {
  if (opts.delivery != plan_delivery::direct)
    return;
  broadcast(msg::begin_step{step.plan.step, step.plan.loads,
                            std::move(flushed_stores),
                            {step.flush.begin(), step.flush.end()}});
}

void scheduler_state::end_step(step_phase& step) {
  auto& plan = step.plan;
  plan.flush.assign(step.flush.begin(), step.flush.end());
  auto flushed = std::vector<job>{};
  auto deferred = msg::stores{plan.step, {}};
  for (const auto& work : plan.stores) {
    const auto now_ = !step.idle && step.flush.count(work.id) > 0;
    (now_ ? flushed : deferred.jobs).push_back(work);
  }
  if (!step.idle && opts.delivery == plan_delivery::by_engine)
    plan.bytes = encode_plan(
      self->system(),
      {plan.step, plan.loads, std::move(flushed), plan.flush}, deferred);
  else if (step.begin_late)
    send_begin_step(step, std::move(flushed));
  if (!deferred.jobs.empty() && (step.idle || plan.bytes.empty()))
    broadcast(std::move(deferred));
  for (auto id : step.finished) {
    find(id)->closed = true;
    drop_if_over(id);
  }
  counters.flushed_jobs += plan.flush.size();
  plan.pending_work = jobs.running() > 0;
  if (!step.idle) {
    fresh.clear();
    leftover_flush.clear();
    self->send(engine, std::move(plan));
  }
  done();
  maybe_stopped();
}

} // namespace kvtide
