// SPDX-License-Identifier: Apache-2.0

/// @file
/// The engine's calls, except `step`.

#include "actors/request.hpp"
#include "actors/scheduler.hpp"
#include "core/call_faults.hpp"
#include "core/round_up.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace kvtide {

namespace {

using core::name_of;

/// One list per group, long enough for `tokens`, and a mark for each block.
bool fits_groups(const allocated& call, const core::layout& shape,
                 token_count tokens) {
  const auto groups = shape.groups.size();
  if (call.blocks.size() != groups || call.hashed.size() != groups)
    return false;
  for (std::size_t g = 0; g < groups; ++g) {
    const auto room = static_cast<token_count>(call.blocks[g].size())
                    * shape.groups[g].block_tokens;
    if (call.blocks[g].size() != call.hashed[g].size() || room < tokens)
      return false;
  }
  return true;
}

} // namespace

// -- requests -----------------------------------------------------------------

void scheduler_state::start(msg::add& x) {
  const auto& call = x.call;
  if (stopping)
    return fail(x.ticket, call.request, core::too_late_to_add());
  if (auto fault = core::fault_of(call); fault.code != ec::none)
    return fail(x.ticket, call.request, std::move(fault));
  if (find(call.request) != nullptr)
    return fail(x.ticket, call.request, ec::duplicate_request,
                name_of(call.request)
                  + " is still tracked; use another id, or wait until its "
                    "last job has ended");
  auto row = std::allocate_shared<request_row>(
    std::pmr::polymorphic_allocator<request_row>{&row_memory}, shape);
  row->wish.prompt = call.prompt_tokens;
  row->wish.known = call.known_tokens;
  row->wish.cap = call.cap;
  row->wish.prompt_only = call.prompt_only || opts.offload_prompt_only;
  row->wish.no_store = call.no_store;
  row->no_read = call.no_read;
  row->actor = self->spawn(
    request, request_config{call.request, shape, rule, call.prompt_tokens},
    caf::actor_cast<scheduler_request_port>(self));
  self->monitor(row->actor);
  refresh_boundary(*row);
  if (checks)
    checks->lives.added(call.request);
  rows.emplace(call.request, std::move(row));
}

void scheduler_state::start(msg::extend& x) {
  auto* row = find(x.call.request);
  if (row == nullptr)
    return fail(x.ticket, x.call.request, ec::unknown_request,
                name_of(x.call.request) + " is not tracked; add it first");
  if (x.call.first != row->keys.hashes())
    return fail(x.ticket, x.call.request, ec::out_of_order,
                name_of(x.call.request) + ": hashes up to "
                  + std::to_string(row->keys.hashes())
                  + " are known; send the next ones from there");
  const auto empty
    = std::any_of(x.call.hashes.begin(), x.call.hashes.end(),
                  [](const prefix_hash& hash) { return hash.size() == 0; });
  const auto ids = x.call.token_ids.size();
  const auto covered
    = x.call.hashes.size() * static_cast<std::size_t>(shape->hash_tokens);
  if (empty || (ids != 0 && ids != covered))
    return fail(x.ticket, x.call.request, ec::invalid_argument,
                name_of(x.call.request)
                  + ": a prefix hash must not be empty, and token_ids must be "
                    "empty or name every token that the hashes cover");
  row->keys.append(x.call.hashes, x.call.token_ids,
                   x.call.first == 0 ? x.call.parent : prefix_hash{});
}

void scheduler_state::start(msg::outputs& x) {
  for (const auto& output : x.call.rows) {
    auto* row = find(output.request);
    if (row == nullptr || row->wish.ending || !is_token_count(output.known)
        || !is_token_count(output.computed)) {
      wrong_call("outputs name a request that is not tracked or has finished, "
                 "or a number of tokens that is out of range");
      continue;
    }
    // A later step may be planned already: what it computes stays scheduled.
    const auto end = row->wish.computed + row->wish.scheduled;
    row->wish.known = output.known;
    row->wish.computed = output.computed;
    row->wish.scheduled = std::max<token_count>(0, end - output.computed);
  }
}

void scheduler_state::start(msg::truncate& x) {
  auto* row = find(x.call.request);
  if (row == nullptr || row->wish.ending)
    return fail(x.ticket, x.call.request, ec::unknown_request,
                name_of(x.call.request) + " is not running");
  const auto tokens = x.call.tokens;
  if (tokens < 0 || tokens > row->wish.known)
    return fail(x.ticket, x.call.request, ec::invalid_argument,
                name_of(x.call.request) + ": cannot roll back to "
                  + std::to_string(tokens) + " of "
                  + std::to_string(row->wish.known) + " known tokens");
  auto& wish = row->wish;
  wish.known = tokens;
  wish.computed = std::min(wish.computed, tokens);
  wish.scheduled = 0;
  row->keys.truncate(tokens);
  for (std::size_t g = 0; g < row->next.size(); ++g)
    row->next[g] = std::min(
      row->next[g],
      static_cast<std::size_t>(tokens / shape->groups[g].chunk_tokens));
  const auto rewritten = [&](group_id group, std::size_t chunk) {
    return static_cast<token_count>(chunk + 1)
           * shape->groups[group].chunk_tokens
         > tokens;
  };
  // Behind the cut other chunks will be: they may be tried as often (R8).
  std::erase_if(row->retries, [&](const auto& tried) {
    return rewritten(tried.first.first, tried.first.second);
  });
  refresh_boundary(*row);
  // The blocks behind are written again: stores that read them end first.
  for (auto id : row->jobs) {
    const auto& work = jobs.find(id)->work;
    if (work.kind == job_kind::store
        && std::any_of(
          work.rows.begin(), work.rows.end(),
          [&](const job_row& r) { return rewritten(r.key.group, r.chunk); }))
      leftover_flush.insert(id);
  }
}

void scheduler_state::start(msg::finish& x) {
  auto* row = find(x.call.request);
  const auto newly = row != nullptr && !row->wish.ending;
  if (newly && !take_ending(*row, x.call))
    return fail(x.ticket, x.call.request, core::fault_of(x.call));
  auto out = finish_answer{x.ticket, x.call.request, {}};
  // Loads may still write, also those from before a reset or past their
  // deadline (S7).
  for (const auto& [id, entry] : jobs.all()) {
    if (entry.work.request != x.call.request
        || entry.work.kind != job_kind::load)
      continue;
    const auto blocks = entry.blocks();
    out.held.insert(out.held.end(), blocks.begin(), blocks.end());
    jobs.find(id)->blocks_held = true;
  }
  if (newly)
    await_plan(x.call.request, *row);
  else if (row != nullptr)
    wrong_call("a request was finished twice");
  answer(std::move(out));
}

bool scheduler_state::take_ending(request_row& row, const finish_call& call) {
  if (core::fault_of(call).code != ec::none)
    return false;
  if (call.reason > finish_reason::ignored
      && call.reason != row.wish.ending) // R2
    wrong_call("a request ended for a reason that this version does not know; "
               "only its computed tokens are stored",
               "reason " + std::to_string(static_cast<int>(call.reason)));
  row.wish.ending = call.reason;
  row.wish.known = call.known;
  row.wish.computed = call.computed;
  row.wish.scheduled = 0;
  return true;
}

/// From here on its blocks may be reused, and the next plan has its tail (S2).
void scheduler_state::await_plan(request_id id, request_row& row) {
  release_promise(row);
  for (auto job : row.jobs)
    if (const auto& entry = *jobs.find(job); entry.work.kind == job_kind::store)
      watch_blocks(entry, blocks_of::full);
  finishing.push_back(id);
  if (asleep) // Nothing is stored, so it ends at once.
    return push_front({idle_plan{}});
  if (opts.delivery != plan_delivery::direct)
    return; // Without a step there is no way to the ranks.
  idle_due = std::min(
    idle_due,
    later_by(clock_now(), std::chrono::nanoseconds{opts.idle_delay}.count()));
  arm_timer();
}

// -- lookup -------------------------------------------------------------------

void scheduler_state::start(msg::lookup& x) {
  auto seen = tsl::robin_set<request_id>{};
  for (const auto& query : x.rows) {
    const auto* row = find(query.request);
    if (row == nullptr || row->wish.ending)
      return fail(x.ticket, query.request, ec::unknown_request,
                  name_of(query.request)
                    + " is not tracked or has finished; leave it out of "
                      "lookups");
    if (!seen.insert(query.request).second)
      return fail(x.ticket, query.request, ec::invalid_argument,
                  name_of(query.request) + " is named twice in one lookup");
    if (auto fault = core::fault_of(query); fault.code != ec::none)
      return fail(x.ticket, query.request, std::move(fault));
  }
  auto lookup = lookup_phase{};
  lookup.ticket = x.ticket;
  lookup.hits.reserve(x.rows.size());
  auto queries = std::vector<core::search_query>{};
  for (const auto& query : x.rows) {
    auto& row = *find(query.request);
    auto hit = lookup_hit{};
    hit.request = query.request;
    counters.lookups += 1;
    row.wish.known = query.known_tokens;
    empty_tables(query.request, row);
    release_promise(row); // R11
    if (asleep) {
      row.local = row.hit_tokens = query.local;
    } else if (!row.jobs.empty()) {
      hit.ask_again = true; // PRE-02
    } else if (!row.actor) {
      row.local = row.hit_tokens = query.local;
    } else {
      row.local = query.local;
      auto ask = query_of(row, query.local, query.known_tokens);
      ask.touch = !rule->recency_per_admission || !row.accessed; // R12
      ask.promise = ++last_promise;
      lookup.searched.push_back(lookup.hits.size());
      lookup.promises.push_back(ask.promise);
      queries.push_back(std::move(ask));
    }
    lookup.hits.push_back(hit);
  }
  auto& current = phase.emplace<lookup_phase>(std::move(lookup));
  if (queries.empty())
    answer_lookup(current);
  else
    ask_cache(msg::search{turn, std::move(queries)});
}

core::search_query scheduler_state::query_of(const request_row& row,
                                             token_count local,
                                             token_count known) const {
  auto out = core::search_query{};
  out.local = local;
  out.known = known;
  out.skip_reading = row.no_read || !ranks_complete();
  out.ignore_pending
    = rule->bounded_deferral && row.deferrals >= opts.max_deferrals; // R7
  out.keys = row.keys.views();
  return out;
}

void scheduler_state::on(msg::search_result& x) {
  auto* lookup = in_phase<lookup_phase>(x.turn, "search_result");
  if (lookup == nullptr)
    return;
  if (x.answers.size() != lookup->searched.size())
    return unasked(x.turn, "search_result");
  for (std::size_t i = 0; i < lookup->searched.size(); ++i) {
    auto& hit = lookup->hits[lookup->searched[i]];
    const auto& answer = x.answers[i];
    auto& row = *find(hit.request);
    row.hit_tokens = answer.end_tokens;
    row.accessed = row.accessed || answer.touched;
    hit.ask_again = !answer.tokens;
    hit.tokens = answer.tokens.value_or(0);
    row.deferrals += hit.ask_again;
    counters.hit_tokens += static_cast<std::uint64_t>(hit.tokens);
    if (answer.held) {
      row.promise = hit.promise = lookup->promises[i];
      promises.push_back({last_step, hit.request, hit.promise});
    }
  }
  answer_lookup(*lookup);
}

void scheduler_state::answer_lookup(lookup_phase& lookup) {
  for (const auto& hit : lookup.hits)
    counters.deferrals += hit.ask_again;
  answer(lookup_answer{lookup.ticket, std::move(lookup.hits)});
  done();
}

void scheduler_state::start(msg::decline& x) {
  const auto open = std::find_if(
    promises.begin(), promises.end(),
    [&](const open_promise& y) { return y.promise == x.promise; });
  if (open != promises.end())
    if (auto* row = find(open->request);
        row != nullptr && row->promise == x.promise)
      return release_promise(*row);
  fail(x.ticket, 0, core::unknown_promise(x.promise));
}

// -- allocation ---------------------------------------------------------------

void scheduler_state::start(msg::allocate& x) {
  auto& call = x.call;
  auto* row = find(call.request);
  if (row == nullptr || row->wish.ending)
    return fail(x.ticket, call.request, ec::unknown_request,
                name_of(call.request)
                  + " is not tracked or has finished; nothing is loaded");
  if (call.external == 0) {
    release_promise(*row);
    if (rule->allocation_is_always_fresh) // R15, FEN-02
      note_fresh(call.blocks);
    return;
  }
  if (asleep)
    return fail(x.ticket, call.request, core::is_asleep("loads"));
  if (call.external < 0 || call.external > row->hit_tokens - row->local
      || !fits_groups(call, *shape, row->local + call.external))
    return fail(x.ticket, call.request,
                core::bad_load(call.request, row->hit_tokens - row->local));
  if (!row->jobs.empty())
    return fail(x.ticket, call.request, ec::out_of_order,
                name_of(call.request)
                  + " has jobs in flight; look it up again first");
  note_fresh(call.blocks);
  auto& allocation = phase.emplace<allocate_phase>();
  allocation.request = call.request;
  allocation.total = row->local + call.external;
  if (row->actor)
    self->send(row->actor,
               msg::plan_load{turn, std::exchange(row->update, {}),
                              row->keys.views(), allocation.total,
                              std::move(call.blocks), std::move(call.hashed)});
  else
    answer_for_request(call.request);
}

void scheduler_state::on(msg::load_offer& x) {
  auto* allocation = in_phase<allocate_phase>(x.turn, "load_offer");
  if (allocation == nullptr)
    return;
  if (allocation->offered || x.request != allocation->request)
    return unasked(x.turn, "a second load_offer");
  allocation->offered = true;
  allocation->rows = std::move(x.rows);
  auto ask = msg::prepare_load{};
  ask.turn = turn;
  ask.keys.reserve(allocation->rows.size());
  for (const auto& row : allocation->rows)
    ask.keys.push_back(row.key);
  ask.promise = std::exchange(find(x.request)->promise, 0);
  ask_cache(std::move(ask));
}

void scheduler_state::on(msg::load_prepared& x) {
  auto* allocation = in_phase<allocate_phase>(x.turn, "load_prepared");
  if (allocation == nullptr)
    return;
  if (!allocation->offered)
    return unasked(x.turn, "load_prepared");
  auto& row = *find(allocation->request);
  auto parts = std::move(allocation->rows);
  slots_gained = slots_gained || x.grant.gained; // R5
  counters.load_jobs += 1;
  const auto starts = x.grant.ok() && ranks_complete() && !parts.empty();
  if (starts)
    for (std::size_t i = 0; i < parts.size(); ++i)
      parts[i].slot = x.grant.slots[i];
  auto work = job{0, job_kind::load, allocation->request, std::move(parts)};
  if (starts) {
    for (std::size_t g = 0; g < row.next.size(); ++g)
      row.next[g]
        = core::units_for(allocation->total, shape->groups[g].chunk_tokens);
    refresh_boundary(row);
    auto& entry = jobs.add(std::move(work));
    entry.local = row.local;
    expect_reports(entry);
    if (checks)
      checks->job_started(entry.work);
    row.jobs.push_back(entry.work.id);
    waiting_loads.push_back(entry.work);
  } else {
    // R13: a load of what is not there fails at once; so does one that lacks a
    // rank, or whose request actor died.
    counters.failed_jobs += 1;
    auto failed = core::tracked_job{};
    failed.work = std::move(work);
    failed.work.id = jobs.skip_id();
    failed.first_failed_row = 0; // Nothing of it was copied.
    failed.local = row.local;
    if (x.grant.ok())
      tell_cache(completion_of(failed));
    fail_load(failed);
  }
  done();
}

// -- the whole cache ----------------------------------------------------------

void scheduler_state::start(msg::reset& x) {
  counters.resets += 1;
  if (!cache)
    start_cache(); // It was given up.
  answer(call_done{x.ticket, forget_everything()});
}

std::vector<job_id> scheduler_state::forget_everything(
  std::optional<std::vector<core::kept_chunk>> kept) {
  auto out = std::vector<job_id>{};
  auto running = std::vector<slot_id>{};
  const auto keep = rule->reset_keeps_running_slots; // R9
  for (const auto& [id, entry] : jobs.all()) {
    const auto slots = entry.slots();
    running.insert(running.end(), slots.begin(), slots.end());
    jobs.find(id)->slots_kept = keep;
    if (!entry.settled && !entry.stale)
      out.push_back(id);
  }
  leftover_flush.insert(out.begin(), out.end());
  jobs.forget_all(); // S11
  if (checks)
    checks->reset(jobs.next_id());
  watch.clear();
  tell_cache(msg::reset_pool{std::move(running), keep, std::move(kept)});
  auto over = std::vector<request_id>{};
  for (auto i = rows.begin(); i != rows.end(); ++i) {
    auto& row = *i.value();
    row.jobs.clear(); // RST-01
    row.promise = 0;
    row.refused = false;
    row.retries.clear();
    row.next.assign(row.next.size(), 0);
    refresh_boundary(row);
    if (row.wish.ending)
      over.push_back(i.key());
  }
  for (auto id : over) {
    if (checks)
      checks->lives.forgotten(id);
    drop(id);
  }
  finishing.clear();
  refused.clear();
  promises.clear();
  idle_due = never;
  return out;
}

void scheduler_state::start(msg::get_stats& x) {
  phase = report_phase{x.ticket, false};
  ask_cache(msg::get_pool_report{turn});
}

void scheduler_state::start(msg::get_snapshot& x) {
  phase = report_phase{x.ticket, true};
  ask_cache(msg::get_pool_report{turn});
}

void scheduler_state::on(const msg::pool_report& x) {
  auto* report = in_phase<report_phase>(x.turn, "pool_report");
  if (report == nullptr)
    return;
  if (report->snapshot) {
    auto out = msg::snapshot_answer{};
    out.ticket = report->ticket;
    for (const auto& [id, row] : rows) {
      out.tracked.push_back(id);
      out.next[id].assign(row->next.begin(), row->next.end());
    }
    std::sort(out.tracked.begin(), out.tracked.end());
    for (const auto& [id, entry] : jobs.all())
      if (!entry.stale && !entry.settled)
        out.jobs.push_back(
          {id, static_cast<std::uint32_t>(std::popcount(entry.silent))});
    out.watched_blocks = watch.blocks();
    out.free_slots = x.state.free;
    out.idle_chunks = x.state.evictable;
    out.writing_chunks = x.state.writing;
    answer(std::move(out));
  } else {
    auto out = counters;
    out.order_errors = order.total();
    out.order_errors_by_rule = order.counts();
    out.tracked_requests = rows.size();
    out.jobs_in_flight = jobs.all().size();
    out.host_slots = x.slots;
    out.free_slots = x.state.free;
    out.quarantined_slots = x.state.quarantined;
    out.pinned_slots = x.state.busy;
    out.held_slots = x.state.held;
    out.writing_slots = x.state.writing;
    out.watched_blocks = watch.size();
    out.sliding_entries = sliding.size();
    out.stored_chunks = x.stored_chunks;
    out.loaded_chunks = x.loaded_chunks;
    out.evicted_chunks = x.evicted_chunks;
    answer(stats_answer{report->ticket, out});
  }
  done();
}

void scheduler_state::start(msg::take_events& x) {
  phase = events_phase{x.ticket};
  ask_cache(msg::drain_events{turn});
}

void scheduler_state::on(msg::cache_events& x) {
  const auto* events = in_phase<events_phase>(x.turn, "cache_events");
  if (events == nullptr)
    return;
  answer(events_answer{events->ticket, std::move(x.events)});
  done();
}

void scheduler_state::start(msg::explain& x) {
  const auto* row = find(x.request);
  if (row == nullptr || row->wish.ending)
    return fail(x.ticket, x.request, ec::unknown_request,
                name_of(x.request)
                  + " is not tracked or has finished, so nothing is looked up "
                    "for it");
  auto& current = phase.emplace<explain_phase>();
  auto& out = current.answer;
  out.ticket = x.ticket;
  out.request = x.request;
  out.prompt_tokens = row->wish.prompt;
  out.known_tokens = row->wish.known;
  out.local = std::min(row->local, row->wish.known);
  auto query = query_of(*row, out.local, out.known_tokens);
  out.hashed_tokens = core::keyed_tokens(*shape, query.keys);
  current.obstacle = core::first_of({asleep, !row->jobs.empty(), !row->actor,
                                     row->no_read, !ranks_complete(), !cache});
  ask_cache(msg::explain_keys{turn, std::move(query)});
}

void scheduler_state::on(msg::explained& x) {
  auto* explain = in_phase<explain_phase>(x.turn, "explained");
  if (explain == nullptr)
    return;
  core::conclude(*shape, explain->obstacle, std::move(x.what), explain->answer);
  answer(std::move(explain->answer));
  done();
}

void scheduler_state::start(msg::shutdown& x) {
  if (stopping)
    return fail(x.ticket, 0, core::stopping_already());
  stopping = stop_call{
    x.ticket, later_by(clock_now(), std::max<nanoseconds_t>(0, x.deadline))};
  if (!finishing.empty() && opts.delivery == plan_delivery::direct)
    push(idle_plan{}); // Their tails are stored now or never.
  arm_timer();
  maybe_stopped();
}

} // namespace kvtide
