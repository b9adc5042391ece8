// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/connector_replay.hpp"

#include "actors/cache_manager.hpp"
#include "actors/gpu_worker.hpp"
#include "actors/scheduler.hpp"
#include "tests/conformance/key_text.hpp"
#include "tests/conformance/spans.hpp"
#include "tests/conformance/want.hpp"
#include "tests/support/message_name.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <typeinfo>
#include <utility>

namespace kvtide::conformance {

connector_replay::connector_replay(const connector_scenario& content,
                                   plan_delivery delivery, stage& actors,
                                   recorder& out)
  : content_(content), stage_(actors), out_(out),
    heard_(std::make_shared<engine_log>()),
    by_engine_(delivery == plan_delivery::by_engine) {
  open(delivery);
}

void connector_replay::run() {
  for (const auto& line : content_.lines) {
    if (out_.enough())
      return;
    play(line);
  }
  if (out_.enough() || content_.lines.empty())
    return;
  out_.enter(content_.lines.back().number, "end");
  (void)ask(probe{});
}

// -- start --------------------------------------------------------------------

void connector_replay::open(plan_delivery delivery) {
  auto opts = content_.opts;
  opts.delivery = delivery;
  opts.job_deadline = job_deadline;
  // The scheduler's own part of S13 would plan what the file plans in a step.
  opts.idle_delay = never_idle;
  engine_ = stage_.spawn(driver_engine, heard_);
  auto cache
    = stage_.spawn(cache_manager, cache_manager_config{content_.shape, opts});
  scheduler_ = stage_.spawn(
    scheduler, scheduler_config{content_.shape, opts, {}}, cache, engine_);
  for (rank_id rank = 0; rank < opts.ranks; ++rank)
    add_rank(rank);
  settle();
  other_actors_ = stage_.actors();
  for (const auto& rank : ranks_)
    if (!rank.log->registered)
      out_.give_up("got no answer, want kv_registered");
}

void connector_replay::add_rank(rank_id rank) {
  auto log = std::make_shared<rank_log>();
  log->slots = content_.host_chunks;
  auto cfg = gpu_worker_config{};
  cfg.rank = rank;
  cfg.rule = &core::rules_of(content_.opts.rules);
  cfg.job_deadline = job_deadline;
  cfg.idle_delay = idle_delay;
  auto device = stage_.spawn(driver_device, log);
  auto side = stage_.spawn(driver_rank_side, log);
  auto worker = stage_.spawn(gpu_worker, std::move(cfg), device,
                             scheduler_worker_port{scheduler_}, side);
  auto memory = kv_memory{};
  memory.rank = rank;
  stage_.send(side, worker, msg::register_kv{std::move(memory)});
  ranks_.push_back({std::move(log), std::move(device), std::move(side),
                    std::move(worker), rank_ledger{rank}});
}

// -- lines --------------------------------------------------------------------

void connector_replay::play(const connector_line& line) {
  out_.enter(line.number, line.op);
  const auto* added = std::get_if<add_request>(&line.call);
  if (added == nullptr)
    extend(line.hashes);
  const auto got
    = std::visit([this](const auto& call) { return ask(call); }, line.call);
  if (added != nullptr)
    extend(line.hashes);
  if (!line.want.is_null() && !got.is_null())
    out_.compare(line.want, got);
  complain_of_rest();
}

void connector_replay::extend(const std::vector<extend_keys>& calls) {
  for (const auto& call : calls) {
    const auto ticket = say(msg::extend{0, call});
    // The engine may go on hashing for a request that the runtime forgot.
    (void)heard_->take<call_failed>([&](const call_failed& x) {
      return x.ticket == ticket && x.reason.code == ec::unknown_request;
    });
  }
}

json connector_replay::ask(const add_request& call) {
  say(msg::add{0, call});
  finished_.erase(call.request);
  return {};
}

json connector_replay::ask(const lookup_row& call) {
  const auto got = answer<lookup_answer>(say(msg::lookup{0, {call}}));
  if (!got)
    return {};
  if (got->hits.size() != 1 || got->hits.front().request != call.request) {
    out_.complain("got an answer for other requests");
    return {};
  }
  const auto& hit = got->hits.front();
  return {{"tokens", hit.ask_again ? json{} : json(hit.tokens)},
          {"async", !hit.ask_again && hit.tokens > 0}};
}

json connector_replay::ask(const allocated& call) {
  say(msg::allocate{0, call});
  return {};
}

json connector_replay::ask(const finish_call& call) {
  finished_.insert(call.request);
  const auto got = answer<finish_answer>(say(msg::finish{0, call}));
  // Whether blocks stay reserved is not what the files' answer is about.
  return got ? json{{"delay_free", false}} : json{};
}

json connector_replay::ask(const reset_cache&) {
  (void)answer<call_done>(say(msg::reset{}));
  return {};
}

json connector_replay::ask(const take_events&) {
  const auto got = answer<events_answer>(say(msg::take_events{}));
  if (!got)
    return {};
  return {{"events", events_text(got->events)}};
}

json connector_replay::ask(const probe&) {
  const auto got = answer<msg::snapshot_answer>(say(msg::get_snapshot{}));
  if (!got)
    return {};
  check_actors(got->tracked.size());
  auto tracked = json::array();
  for (const auto id : got->tracked)
    tracked.push_back(name_of(id));
  auto jobs = json::array();
  for (const auto& job : got->jobs)
    jobs.push_back(json{job.job, job.missing_reports});
  auto next = json::object();
  for (const auto& [id, chunks] : got->next)
    next[name_of(id)] = chunks;
  return {{"tracked", sorted(std::move(tracked))},
          {"jobs", sorted(std::move(jobs))},
          {"pending_work", !got->jobs.empty()},
          {"next_stored", std::move(next)},
          {"watched_blocks", sorted(got->watched_blocks)},
          {"host",
           {{"free", got->free_slots},
            {"evictable", got->idle_chunks},
            {"writing", got->writing_chunks}}}};
}

// -- reports ------------------------------------------------------------------

json connector_replay::ask(const reports& call) {
  for (const auto& entry : call.jobs)
    report(entry.job, entry.count);
  return {};
}

void connector_replay::report(job_id id, std::uint32_t count) {
  auto left = count;
  for (auto& rank : ranks_) {
    if (left == 0)
      break;
    if (rank.ledger.reported(id))
      continue;
    --left;
    report_on(rank, id);
  }
  if (left > 0)
    out_.complain("job " + std::to_string(id) + " has fewer than "
                  + std::to_string(count) + " reports left");
  else if (std::all_of(ranks_.begin(), ranks_.end(), [id](const seat& rank) {
             return rank.ledger.reported(id);
           }))
    expect_notice(id);
}

void connector_replay::report_on(seat& rank, job_id id) {
  if (!rank.ledger.handed_over(id)) {
    // A store that no step has begun yet: the worker's part of S13.
    if (!stage_.advance(idle_delay))
      out_.give_up("the actors do not come to rest");
    settle();
  }
  rank.ledger.report(id);
  if (!rank.ledger.handed_over(id))
    return out_.complain("got no answer, want submit_jobs with job "
                         + std::to_string(id) + " to report");
  stage_.send(rank.device, rank.worker, msg::copies_done{{{id, true, 0, {}}}});
  settle();
}

void connector_replay::expect_notice(job_id id) {
  const auto pos = jobs_.find(id);
  if (pos == jobs_.end() || pos->second.kind == job_kind::store)
    return;
  const auto request = pos->second.request;
  const auto done = heard_->take<load_done>([id, request](const load_done& x) {
    return x.job == id && x.request == request;
  });
  if (done)
    return;
  const auto released = heard_->take<blocks_released>(
    [request](const blocks_released& x) { return x.request == request; });
  if (!released || finished_.count(request) == 0)
    out_.complain("got no notice, want load_done of job " + std::to_string(id));
}

// -- steps --------------------------------------------------------------------

json connector_replay::ask(const step_call& call) {
  auto numbered = call;
  numbered.step = ++last_step_;
  const auto plan = answer<step_plan>(say(msg::step{0, std::move(numbered)}));
  if (!plan)
    return {};
  if (plan->step != last_step_)
    out_.complain("got the plan of step " + std::to_string(plan->step)
                  + ", want that of " + std::to_string(last_step_));
  for (const auto* list : {&plan->loads, &plan->stores})
    for (const auto& x : *list)
      jobs_[x.id] = {x.kind, x.request};
  run_ranks(*plan);
  return {{"load_jobs", jobs_text(plan->loads)},
          {"store_jobs", jobs_text(plan->stores)},
          {"flush", sorted(plan->flush)}};
}

void connector_replay::run_ranks(const step_plan& plan) {
  for (auto& rank : ranks_)
    if (by_engine_)
      stage_.send(rank.side, rank.worker,
                  msg::await_step{plan.step, plan.bytes});
  settle();
  const auto events = compute_events{plan.step};
  for (auto& rank : ranks_) {
    if (std::exchange(rank.log->ready, {}) != std::vector{plan.step})
      return out_.give_up("got no answer, want step_ready of step "
                          + std::to_string(plan.step) + " on each rank");
    rank.ledger.check_step(plan);
    rank.ledger.end_step(events);
    stage_.send(rank.side, rank.worker, msg::end_step{plan.step, events});
  }
  settle();
}

namespace {

/// Per group: logical index, in the request's block table, of the first block
/// that is copied.
std::vector<std::size_t> first_blocks(const job& work,
                                      const core::layout& shape) {
  auto out = std::vector<std::size_t>(shape.groups.size());
  auto found = std::vector<bool>(shape.groups.size());
  for (const auto& row : work.rows) {
    const auto group = row.key.group;
    for (std::size_t i = 0; i < row.blocks.size(); ++i) {
      if (found[group] || row.blocks[i] == no_block)
        continue;
      found[group] = true;
      out[group] = row.chunk * shape.blocks_per_chunk + i;
    }
  }
  return out;
}

} // namespace

json connector_replay::jobs_text(const std::vector<job>& jobs) const {
  auto result = json::array();
  for (const auto& job : jobs) {
    auto blocks = json::array();
    auto slots = json::array();
    auto keys = json::array();
    auto sizes = std::vector<std::size_t>(content_.shape->groups.size());
    for (const auto& row : job.rows) {
      slots.push_back(row.slot);
      keys.push_back(key_text(row.key));
      for (const auto block : row.blocks) {
        if (block == no_block)
          continue;
        blocks.push_back(block);
        if (row.key.group < sizes.size())
          ++sizes[row.key.group];
      }
    }
    result.push_back({{"job", job.id},
                      {"req", name_of(job.request)},
                      {"gpu_blocks", std::move(blocks)},
                      {"group_sizes", sizes},
                      {"block_indices", first_blocks(job, *content_.shape)},
                      {"host_chunks", std::move(slots)},
                      {"keys", std::move(keys)}});
  }
  return result;
}

// -- helpers ------------------------------------------------------------------

template <class T>
ticket_id connector_replay::say(T call) {
  call.ticket = ++last_ticket_;
  stage_.send(engine_, scheduler_, std::move(call));
  settle();
  return last_ticket_;
}

template <class T>
std::optional<T> connector_replay::answer(ticket_id ticket) {
  auto result = heard_->answer<T>(ticket);
  if (result)
    return result;
  const auto failure = heard_->answer<call_failed>(ticket);
  out_.complain("got " + (failure ? describe(*failure) : "no answer")
                + ", want " + test::message_name(typeid(T)));
  return std::nullopt;
}

void connector_replay::settle() {
  if (!stage_.run())
    return out_.give_up("the actors do not come to rest");
  for (auto& rank : ranks_)
    rank.ledger.take(std::exchange(rank.log->orders, {}));
}

void connector_replay::complain_of_rest() {
  for (const auto& event : heard_->rest())
    // Which blocks stay reserved is no matter of the files.
    if (!std::holds_alternative<blocks_released>(event))
      out_.complain("got " + describe(event) + ", which is not due");
  for (auto& rank : ranks_) {
    for (const auto step : std::exchange(rank.log->ready, {}))
      out_.complain("got step_ready of step " + std::to_string(step)
                    + ", which is not due");
    for (const auto& text : std::exchange(rank.log->problems, {}))
      out_.complain(text);
    for (const auto& text : rank.ledger.take_complaints())
      out_.complain(text);
  }
}

void connector_replay::check_actors(std::size_t tracked) {
  // S2: a request lives as long as it is tracked, and not longer.
  const auto alive = static_cast<std::int64_t>(stage_.actors())
                   - static_cast<std::int64_t>(other_actors_);
  if (alive != static_cast<std::int64_t>(tracked))
    out_.complain("got " + std::to_string(alive) + " request actors, want "
                  + std::to_string(tracked));
}

const std::string& connector_replay::name_of(request_id id) const {
  static const auto unknown = std::string{"?"};
  return id < content_.names.size() ? content_.names[id] : unknown;
}

} // namespace kvtide::conformance
