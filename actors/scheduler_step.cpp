// SPDX-License-Identifier: Apache-2.0

/// @file
/// A step of the engine, from its rows to its plan.

#include "actors/scheduler.hpp"
#include "core/call_faults.hpp"
#include "core/store_capability.hpp"
#include "core/store_intent.hpp"
#include "messages/plan_bytes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace kvtide {

namespace {

/// Fewer come too late, more are gone again before their turn.
constexpr std::size_t rows_ahead = 16;

bool has_token_counts(const step_row& row) {
  return is_token_count(row.computed) && is_token_count(row.scheduled)
      && is_token_count(row.known);
}

/// What lies in a row from `first` on, up to `last`.
void prefetch(const void* first, const void* last) {
  for (const auto* at = static_cast<const char*>(first); at < last;
       at += alignof(request_row))
    __builtin_prefetch(at, 1);
}

/// What nearly every row is: nothing about it needs a closer look.
/// @param groups of the layout
/// @param loads some request has a load in flight
bool goes_on(const step_row& row, const request_row& known, std::size_t groups,
             bool loads) {
  // All at once; a negative one is the largest.
  const auto tokens
    = static_cast<std::uint64_t>(row.computed | row.scheduled | row.known);
  return !known.wish.ending && tokens < std::uint64_t{max_tokens}
      && (row.new_blocks.empty() || row.new_blocks.size() == groups)
      && (!loads || known.jobs.empty());
}

std::string name_of(step_id step, request_id request) {
  return "step " + std::to_string(step) + ", request "
       + std::to_string(request);
}

} // namespace

// -- what the engine says -----------------------------------------------------

void scheduler_state::start(msg::step& x) {
  auto& call = x.call;
  if (stepped)
    if (auto fault = core::fault_of_step(call.step, last_step);
        fault.code != ec::none)
      return fail(x.ticket, 0, std::move(fault));
  if (asleep)
    return fail(x.ticket, 0, core::is_asleep("computes"));
  if (!std::exchange(stepped, true))
    for (auto& seat : ranks)
      seat.taken = call.step - 1; // It may begin at any number.
  last_step = call.step;
  idle_due = never;
  counters.steps += 1;
  auto step = step_phase{};
  step.participants = std::exchange(spare_participants, {});
  step.plan.ticket = x.ticket;
  step.plan.step = call.step;
  ignore_unusable(call.preempted);
  take_progress(call.rows);
  for (auto id : call.preempted)
    find(id)->named_in = 0; // A request may end in the step that preempts it.
  ignore_unusable(call.finished);
  step.finished = take_tails(call.finished);
  take_tables(call.preempted);
  expire_promises();
  step.flush = find_flushes(call.preempted);
  step.plan.loads = std::exchange(waiting_loads, {});
  invite_all(step, call.preempted);
  auto& current = phase.emplace<step_phase>(std::move(step));
  if (opts.delivery == plan_delivery::direct && !current.begin_late)
    send_begin_step(current, {}); // Before any request is asked.
  ask_participants(current);
}

void scheduler_state::start(idle_plan&) {
  idle_due = never;
  if (finishing.empty())
    return maybe_stopped();
  auto step = step_phase{};
  step.participants = std::exchange(spare_participants, {});
  step.idle = true;
  step.plan.step = last_step;
  step.finished = take_tails({});
  invite_finished(step);
  ask_participants(phase.emplace<step_phase>(std::move(step)));
}

/// R10: what a step preempts and does not know, or names twice.
void scheduler_state::ignore_unusable(std::vector<request_id>& preempted) {
  std::erase_if(preempted, [&](request_id id) {
    auto* row = find(id);
    return row == nullptr || is_named_again(id, *row);
  });
}

/// R10: what a step ends and does not know, or names twice.
/// @pre the rest of the step was looked at
void scheduler_state::ignore_unusable(std::vector<finish_call>& tails) {
  std::erase_if(tails, [&](const finish_call& tail) {
    auto* row = find(tail.request);
    if (row == nullptr || row->closed || is_named_again(tail.request, *row))
      return true; // Untracked ones may be named (C7).
    if (!row->wish.ending)
      wrong_call("a step names a request as finished that is not",
                 name_of(last_step, tail.request));
    return !row->wish.ending;
  });
}

bool scheduler_state::is_named_again(request_id id, request_row& row) {
  if (std::exchange(row.named_in, turn) != turn)
    return false;
  wrong_call("a step names a request twice", name_of(last_step, id));
  return true;
}

/// The only work that is done for every running request: a few comparisons.
/// R10: rows that are not usable are skipped.
void scheduler_state::take_progress(const std::vector<step_row>& said) {
  progress.changed.clear();
  progress.crossing.clear();
  // Found ahead of time, so that they are here when they are looked at.
  auto ahead = std::array<request_row*, rows_ahead>{};
  const auto groups = shape->groups.size();
  const auto loads = jobs.running() > jobs.running_stores();
  const auto look_ahead = [&](std::size_t i) {
    if (i >= said.size())
      return;
    const auto found = rows.find(said[i].request);
    auto* row = found != rows.end() ? found->second.get() : nullptr;
    ahead[i % rows_ahead] = row;
    __builtin_prefetch(row, 1); // Null does no harm.
    if (loads && row != nullptr)
      __builtin_prefetch(&row->jobs);
  };
  for (std::size_t i = 0; i < rows_ahead; ++i)
    look_ahead(i);
  for (std::size_t i = 0; i < said.size(); ++i) {
    const auto& row = said[i];
    auto* known = ahead[i % rows_ahead];
    look_ahead(i + rows_ahead);
    const auto runs_on = known != nullptr && known->named_in != turn
                      && goes_on(row, *known, groups, loads);
    if (!runs_on && !usable(row, known))
      continue;
    known->named_in = turn;
    auto& wish = known->wish;
    wish.computed = row.computed;
    wish.scheduled = row.scheduled;
    wish.known = row.known;
    if (row.kind != row_kind::running || !row.new_blocks.empty())
      progress.changed.emplace_back(&row, known);
    // It never wants more than this.
    if (row.computed + row.scheduled >= known->boundary)
      progress.crossing.emplace_back(&row, known);
  }
}

/// R10: says what is wrong with a row that is not.
bool scheduler_state::usable(const step_row& row, request_row* known) {
  if (known != nullptr && is_named_again(row.request, *known))
    return false;
  if (known == nullptr || known->wish.ending) {
    wrong_call("a step schedules a request that is not tracked or has finished",
               name_of(last_step, row.request));
    return false;
  }
  const auto lists = row.new_blocks.size();
  const auto loads
    = !known->jobs.empty()
   && jobs.find(known->jobs.front())->work.kind == job_kind::load; // S7
  if (!loads && has_token_counts(row)
      && (lists == 0 || lists == shape->groups.size()))
    return true;
  if (loads)
    order.breach(core::order_rule::s7,
                 "a step schedules a request that is "
                 "still loading",
                 name_of(last_step, row.request)
                   + " came before the outcome "
                     "of job "
                   + std::to_string(known->jobs.front()));
  else
    wrong_call("a step has a malformed row", name_of(last_step, row.request));
  // Its new blocks are not taken, so later ones have no place.
  empty_tables(row.request, *known);
  return false;
}

/// @returns the requests whose tails are planned, in order (S2)
std::vector<request_id>
scheduler_state::take_tails(const std::vector<finish_call>& tails) {
  auto out = std::vector<request_id>{};
  for (const auto& tail : tails) {
    if (!take_ending(*find(tail.request), tail))
      wrong_call("a step ends a request with a number of tokens that is out of "
                 "range",
                 name_of(last_step, tail.request));
    out.push_back(tail.request);
  }
  for (auto id : std::exchange(finishing, {}))
    if (std::find(out.begin(), out.end(), id) == out.end())
      out.push_back(id);
  return out;
}

void scheduler_state::take_tables(const std::vector<request_id>& preempted) {
  if (rule->preemption_clears_table) // R3: first of all.
    for (auto id : preempted)
      if (auto& row = *find(id); !row.wish.ending)
        empty_tables(id, row);
  for (const auto& [said, known] : progress.changed) {
    if (said->kind != row_kind::running)
      empty_tables(said->request, *known);
    note_fresh(said->new_blocks);
  }
  clear_stale_blocks(); // C7: all but what this step adds.
  const auto& changed = progress.changed;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    if (i + rows_ahead < changed.size()) {
      const auto& next = *changed[i + rows_ahead].second;
      prefetch(&next.jobs, &next.keys);
    }
    take_blocks(*changed[i].first, *changed[i].second);
  }
}

void scheduler_state::take_blocks(const step_row& row, request_row& known) {
  if (row.kind != row_kind::running) { // An admission ends here.
    known.deferrals = 0;               // R7
    known.accessed = false;            // R12
    release_promise(known);            // R11
    known.has_table = true;
  }
  if (row.new_blocks.empty() || !known.actor)
    return;
  if (!known.has_table)
    return wrong_call("a running request has new blocks, but no block table to "
                      "put them behind; schedule it as fresh or resumed",
                      name_of(last_step, row.request));
  auto& appended = known.update.appended;
  appended.resize(shape->groups.size());
  for (group_id g = 0; g < row.new_blocks.size(); ++g) {
    const auto& blocks = row.new_blocks[g];
    appended[g].insert(appended[g].end(), blocks.begin(), blocks.end());
    known.open_blocks.append(g, blocks);
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
  for (auto block : fresh.all()) {
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
      row.open_blocks.clear(place.group, place.position);
      sliding.remove(block, place.request, place.group, place.position);
    }
  }
}

void scheduler_state::expire_promises() {
  while (!promises.empty()) {
    const auto oldest = promises.front();
    auto* row = find(oldest.request);
    const auto open = row != nullptr && row->promise == oldest.promise;
    if (open && last_step - oldest.step < opts.promise_steps)
      return;
    promises.pop_front();
    if (open)
      release_promise(*row); // R11
  }
}

std::set<job_id>
scheduler_state::find_flushes(const std::vector<request_id>& preempted) const {
  auto out = leftover_flush;
  for (auto id : preempted) {
    const auto& row = *rows.at(id);
    out.insert(row.jobs.begin(), row.jobs.end()); // PRE-01
  }
  for (auto block : fresh.all())
    if (const auto* readers = watch.jobs(block); readers != nullptr)
      out.insert(readers->begin(), readers->end()); // FEN-01
  return out;
}

// -- what requests and the pool say -------------------------------------------

/// Only those take part that may have something to store.
void scheduler_state::invite_all(step_phase& step,
                                 const std::vector<request_id>& preempted) {
  invite_refused(step);
  const auto& crossing = progress.crossing;
  for (std::size_t i = 0; i < crossing.size(); ++i) {
    if (i + rows_ahead < crossing.size()) {
      const auto& next = *crossing[i + rows_ahead].second;
      prefetch(&next, &next.open_blocks);
    }
    const auto& [said, known] = crossing[i];
    if (!known->refused && crosses_boundary(*known))
      invite(step, said->request, *known);
  }
  invite_finished(step);
  for (auto id : preempted)
    if (const auto& row = *find(id); !row.wish.ending || row.closed)
      move_keys(step, row);
}

void scheduler_state::invite_finished(step_phase& step) {
  for (auto id : step.finished) {
    auto& row = *find(id);
    move_keys(step, row);
    if (asleep || !crosses_boundary(row))
      continue;
    step.begin_late = !step.idle;
    invite(step, id, row);
  }
}

/// R12: they go to the newest end before the pool is asked for room.
void scheduler_state::move_keys(step_phase& step, const request_row& row) {
  if (rule->recency_per_admission && row.actor)
    step.moved.push_back(row.keys.views());
}

void scheduler_state::invite(step_phase& step, request_id id,
                             request_row& row) {
  if (!row.actor || std::exchange(row.asked_in, turn) == turn)
    return;
  row.place = static_cast<std::uint32_t>(step.participants.size());
  step.participants.push_back({id, &row, false, {}});
}

void scheduler_state::invite_refused(step_phase& step) {
  if (!std::exchange(slots_gained, false))
    return;
  for (auto id : refused) // R5: before the step's other candidates.
    if (auto& row = *find(id); !row.wish.ending)
      invite(step, id, row);
}

void scheduler_state::ask_participants(step_phase& step) {
  step.offers = std::exchange(spare_offers, {});
  step.offers.reserve(step.participants.size());
  for (std::size_t i = 0; i < step.participants.size(); ++i) {
    if (i + rows_ahead < step.participants.size()) {
      const auto& next = *step.participants[i + rows_ahead].row;
      prefetch(&next, &next.retries + 1);
    }
    auto& who = step.participants[i];
    auto& row = *who.row;
    auto& offer = step.offers.emplace_back();
    offer.request = who.request;
    offer.keys = row.keys.views();
    const auto wanted = core::wanted_tokens(row.wish, *rule);
    if (completes_one_chunk(row, wanted)) {
      take_answer(
        who, offer,
        core::plan_store(*shape, *rule,
                         {row.wish.prompt, offer.keys, row.open_blocks}, wanted,
                         row.next));
      continue;
    }
    ++step.missing;
    self->send(row.actor, msg::plan_store{turn, std::exchange(row.update, {}),
                                          offer.keys, wanted, row.next});
  }
  if (step.missing == 0)
    ask_pool(step);
}

/// The common case, for which the request is not asked: it runs, and has at
/// most one more chunk of each group (docs/decisions/0008).
bool scheduler_state::completes_one_chunk(const request_row& row,
                                          token_count wanted) const {
  if (row.wish.ending)
    return false;
  for (group_id g = 0; g < shape->groups.size(); ++g) {
    const auto next = row.next[g];
    const auto end
      = static_cast<std::size_t>(wanted / shape->groups[g].chunk_tokens);
    if (end > next + 1
        || row.open_blocks.view(g).first > next * shape->blocks_per_chunk)
      return false;
  }
  return true;
}

void scheduler_state::on(msg::store_offer& x) {
  auto* step = in_phase<step_phase>(x.turn, "store_offer");
  if (step == nullptr)
    return;
  const auto* row = find(x.request);
  if (row == nullptr || row->asked_in != turn
      || step->participants[row->place].answered)
    return unasked(x.turn, "a second store_offer");
  take_answer(step->participants[row->place], step->offers[row->place],
              std::move(x.plan));
  if (--step->missing == 0)
    ask_pool(*step);
}

void scheduler_state::take_answer(step_phase::participant& who,
                                  core::store_offer& offer,
                                  core::store_plan plan) const {
  who.answered = true;
  who.storable = std::move(plan.storable);
  leave_out_given_up(*who.row, plan);
  offer.candidates = std::move(plan.candidates);
  offer.hit_tokens = who.row->hit_tokens;
  for (auto& candidate : offer.candidates)
    who.row->keys.describe(candidate);
}

/// R8: a chunk that failed too often is not stored for this request, also where
/// an earlier one that failed later brings it up again.
void scheduler_state::leave_out_given_up(const request_row& row,
                                         core::store_plan& plan) const {
  if (row.retries.empty())
    return;
  auto& all = plan.candidates;
  all.erase(std::remove_if(
              all.begin(), all.end(),
              [&](const core::store_candidate& x) {
                const auto found = row.retries.find({x.key.group, x.chunk});
                return found != row.retries.end()
                    && found->second > opts.store_retries;
              }),
            all.end());
}

void scheduler_state::ask_pool(step_phase& step) {
  auto& offers = step.offers;
  step.offered.reserve(step.participants.size());
  const auto paused = stores_paused();
  for (std::size_t i = 0; i < step.participants.size(); ++i) {
    if (offers[i].candidates.empty() || paused) {
      auto nothing = core::store_grant{};
      if (!offers[i].candidates.empty())
        nothing.settled_tokens = 0;
      settle_offer(step, step.participants[i], {}, nothing);
      continue;
    }
    if (const auto place = step.offered.size(); place != i)
      offers[place] = std::move(offers[i]);
    step.offered.push_back(i);
  }
  offers.resize(step.offered.size());
  if (step.moved.empty() && offers.empty())
    return end_step(step);
  ask_cache(msg::prepare_stores{turn, std::move(step.moved),
                                std::exchange(offers, {})});
}

void scheduler_state::on(msg::stores_prepared& x) {
  auto* step = in_phase<step_phase>(x.turn, "stores_prepared");
  if (step == nullptr)
    return;
  const auto count = step->offered.size();
  if (step->missing > 0 || x.grants.size() != count || x.offers.size() != count)
    return unasked(x.turn, "stores_prepared");
  step->plan.stores.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + rows_ahead < count) {
      const auto& next = *step->participants[step->offered[i + rows_ahead]].row;
      prefetch(&next, &next.update);
      if (checks)
        checks->expect(x.grants[i + rows_ahead]);
    }
    settle_offer(*step, step->participants[step->offered[i]],
                 x.offers[i].candidates, x.grants[i]);
  }
  step->offers = std::move(x.offers);
  end_step(*step);
}

/// @param candidates what was offered
void scheduler_state::settle_offer(step_phase& step,
                                   step_phase::participant& who,
                                   std::span<core::store_candidate> candidates,
                                   const core::store_grant& grant) {
  auto& row = *who.row;
  if (!grant.accepted.empty())
    make_store(step, who, candidates, grant);
  core::advance(*shape, who.storable, grant.settled_tokens, row.next);
  for (group_id g = 0; g < row.next.size(); ++g)
    row.open_blocks.forget_before(g, row.next[g] * shape->blocks_per_chunk);
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

void scheduler_state::make_store(step_phase& step, step_phase::participant& who,
                                 std::span<core::store_candidate> candidates,
                                 const core::store_grant& grant) {
  auto& entry = jobs.add(
    {0, job_kind::store, who.request, core::rows_of(grant, candidates)});
  expect_reports(entry);
  if (checks)
    checks->job_started(entry.work);
  const auto id = entry.work.id;
  auto& row = *who.row;
  row.jobs.push_back(id);
  counters.store_jobs += 1;
  watch_blocks(entry, blocks_of::sliding);
  if (row.wish.ending) {
    // Its blocks are free already, and may be somebody's in this very step.
    watch_blocks(entry, blocks_of::full);
    for_each_block(entry.work, blocks_of::full, [&](block_id block) {
      if (fresh.contains(block))
        step.flush.insert(id); // FEN-01
    });
  }
  step.plan.stores.push_back(entry.work);
}

bool scheduler_state::stores_paused() {
  const auto full
    = (rule->bound_store_jobs && jobs.running_stores() >= opts.max_store_jobs)
   || std::any_of(ranks.begin(), ranks.end(),
                  [this](const rank_seat& seat) { return lags(seat); });
  if (full && !overloaded)
    self->send(engine, overload{jobs.running()});
  overloaded = full;
  return full || !ranks_complete();
}

// -- what the ranks and the engine hear ---------------------------------------

void scheduler_state::send_begin_step(const step_phase& step,
                                      std::vector<job> flushed_stores) {
  broadcast(msg::begin_step{step.plan.step,
                            step.plan.loads,
                            std::move(flushed_stores),
                            {step.flush.begin(), step.flush.end()},
                            jobs.settled_below()});
}

void scheduler_state::end_step(step_phase& step) {
  auto& plan = step.plan;
  plan.flush.assign(step.flush.begin(), step.flush.end());
  auto flushed = std::vector<job>{};
  auto deferred = msg::stores{plan.step, {}};
  deferred.jobs.reserve(plan.stores.size());
  for (const auto& work : plan.stores) {
    const auto in_this_step = !step.idle && step.flush.count(work.id) > 0;
    (in_this_step ? flushed : deferred.jobs).push_back(work);
  }
  if (opts.delivery == plan_delivery::by_engine) {
    plan.bytes = encode_plan({plan.step, plan.loads, std::move(flushed),
                              plan.flush, jobs.settled_below()},
                             deferred, epoch);
  } else {
    if (step.begin_late)
      send_begin_step(step, std::move(flushed));
    const auto far = std::any_of(ranks.begin(), ranks.end(),
                                 [](const rank_seat& x) { return x.remote; });
    if (far) // CNT-02
      for (auto& part : in_parts(std::move(deferred)))
        broadcast(std::move(part));
    else if (!deferred.jobs.empty())
      broadcast(std::move(deferred));
  }
  for (auto id : step.finished) {
    find(id)->closed = true;
    if (checks)
      checks->lives.planned(id);
    drop_if_over(id);
  }
  spare_participants = std::move(step.participants);
  spare_participants.clear();
  spare_offers = std::move(step.offers);
  spare_offers.clear();
  if (!step.idle) {
    counters.flushed_jobs += plan.flush.size();
    plan.pending_work = jobs.running() > 0;
    fresh.clear();
    leftover_flush.clear();
    answer(std::move(plan));
  }
  if (sleeping) { // Is answered before the next item begins (S1).
    phase = std::monostate{};
    maybe_slept();
  }
  done();
  maybe_stopped();
}

} // namespace kvtide
