// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/runtime_link.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace kvtide::replay {

namespace {

using wall_clock = std::chrono::steady_clock;

// Nothing the runtime does takes longer, short of a fault. Counted in glances:
// the clock goes on while the process is stopped, and the runtime does not.
constexpr auto glance = std::chrono::milliseconds{100};
constexpr auto patience = std::chrono::seconds{60} / glance;

options make_runtime_options(const replay_options& opts) {
  auto res = options{};
  res.groups.clear();
  for (auto group = std::size_t{0}; group < opts.shape.groups(); ++group)
    res.groups.push_back(
      {static_cast<std::int32_t>(opts.shape.tokens_per_block),
       static_cast<std::int32_t>(opts.shape.window(group)), false});
  res.blocks_per_chunk = static_cast<std::int32_t>(opts.blocks_per_chunk);
  res.tokens_per_hash = static_cast<std::int32_t>(opts.shape.tokens_per_block);
  res.model_fingerprint = "kvtide-replay";
  res.ranks = opts.ranks;
  res.host_bytes = opts.host_bytes;
  res.policy = opts.policy;
  res.cache_events = true;
  res.rules = opts.rules;
  res.delivery = opts.delivery;
  res.device = opts.kind();
  res.cuda = opts.cuda;
  res.copy_latency = std::chrono::microseconds{opts.copy_latency_us};
  res.copy_bytes_per_second = opts.copy_bytes_per_second();
  // A step computes for simulated milliseconds; nobody is idle before the next
  // one is due.
  if (opts.simulated())
    res.idle_delay = std::chrono::milliseconds{2 * opts.step_ms};
  return res;
}

// Adds the time of a scope to a sum.
class stopwatch {
public:
  explicit stopwatch(std::chrono::nanoseconds& sum) : sum_(sum) {
    // nop
  }

  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;

  ~stopwatch() {
    sum_ += wall_clock::now() - start_;
  }

private:
  std::chrono::nanoseconds& sum_;
  wall_clock::time_point start_ = wall_clock::now();
};

runtime start(const replay_options& opts) {
  auto res = runtime::start(make_runtime_options(opts));
  if (!res)
    throw bad_configuration{res.failure().text};
  return std::move(res).value();
}

} // namespace

runtime_link::runtime_link(const replay_options& opts,
                           const std::vector<kv_arena>& arenas)
  : runtime_(start(opts)), arenas_(arenas), ranks_(opts.ranks),
    kind_(opts.kind()) {
  for (auto id = rank_id{0}; id < ranks_; ++id)
    runtime_.local_rank(id).register_kv(arenas[id].describe("kvtide-replay"));
  for_each_rank([this](rank& side) {
    auto answer = await<kv_registered>(side, "register_kv");
    if (answer.reason.code != ec::none)
      throw bad_configuration{answer.reason.text};
    if (answer.rank == 0)
      notes_ = std::move(answer.notes);
    slots_ = answer.slots;
    slot_bytes_ = answer.slot_bytes;
  });
}

// -- requests -----------------------------------------------------------------

void runtime_link::add(add_request call) {
  const auto timed = stopwatch{spent_.calls};
  runtime_.add(std::move(call));
}

void runtime_link::extend(extend_keys call) {
  const auto timed = stopwatch{spent_.calls};
  runtime_.extend(std::move(call));
}

lookup_hit runtime_link::lookup(const lookup_row& row) {
  const auto timed = stopwatch{spent_.calls};
  auto answer = await<lookup_answer>(runtime_.lookup({row}), "lookup");
  if (!answer || answer->hits.size() != 1)
    return {row.request, false, 0, 0};
  return answer->hits.front();
}

void runtime_link::decline(promise_id promise) {
  const auto timed = stopwatch{spent_.calls};
  runtime_.decline(promise);
}

void runtime_link::allocate(allocated call) {
  const auto timed = stopwatch{spent_.calls};
  runtime_.allocate(std::move(call));
}

finish_answer runtime_link::finish(const finish_call& call) {
  const auto timed = stopwatch{spent_.calls};
  auto answer = await<finish_answer>(runtime_.finish(call), "finish");
  return answer ? std::move(*answer) : finish_answer{0, call.request, {}};
}

// -- steps --------------------------------------------------------------------

step_plan runtime_link::step(step_call call) {
  const auto timed = stopwatch{spent_.calls};
  const auto id = call.step;
  auto answer = await<step_plan>(runtime_.step(std::move(call)), "step");
  // Without a plan the ranks cannot go on.
  if (!answer || answer->step != id)
    throw replay_failure{"step " + std::to_string(id)
                         + " was refused: " + first_failure_};
  return std::move(*answer);
}

readiness runtime_link::begin_step(const step_plan& plan) {
  const auto timed = stopwatch{spent_.calls};
  for_each_rank(
    [&plan](rank& side) { side.begin_step(plan.step, plan.bytes); });
  auto res = readiness{};
  for_each_rank([&](rank& side) {
    const auto ready = await<step_ready>(side, "begin_step");
    if (ready.step != plan.step)
      throw replay_failure{"rank " + std::to_string(ready.rank)
                           + " is ready for step " + std::to_string(ready.step)
                           + " instead of " + std::to_string(plan.step)};
    if (ready.wait_for.kind == fence::kind_t::none)
      return;
    res.waits = true;
    if (auto* lane = arenas_[ready.rank].lane())
      return lane->wait(ready.wait_for); // Before the next step begins (G2).
    if (kind_ != device_kind::host_virtual)
      throw replay_failure{"a fence without simulated time cannot be awaited"};
    res.not_before = std::max(
      res.not_before, static_cast<nanoseconds_t>(ready.wait_for.handle));
  });
  return res;
}

void runtime_link::end_step(step_id step, nanoseconds_t end) {
  const auto timed = stopwatch{spent_.calls};
  for (auto id = rank_id{0}; id < ranks_; ++id) {
    auto& side = runtime_.local_rank(id);
    auto events = compute_events{};
    if (const auto* lane = arenas_[id].lane()) {
      // Behind all that the step has enqueued, an empty one nothing (S6).
      const auto made = side.record_event(lane->handle());
      if (!made)
        throw replay_failure{"record_event: " + made.failure().text};
      events.push_back(made.value());
    } else if (kind_ == device_kind::host_virtual) {
      // With the real clock the compute is over by now.
      events.push_back(static_cast<std::uint64_t>(end));
    }
    side.end_step(step, std::move(events));
  }
}

void runtime_link::outputs(outputs_call call) {
  const auto timed = stopwatch{spent_.calls};
  runtime_.outputs(std::move(call));
}

// -- the whole ----------------------------------------------------------------

void runtime_link::advance(nanoseconds_t now) {
  const auto timed = stopwatch{spent_.waits};
  if (kind_ == device_kind::host_virtual)
    await<call_done>(runtime_.advance(now), "advance");
}

void runtime_link::rest() {
  const auto timed = stopwatch{spent_.waits};
  if (kind_ != device_kind::host_virtual
      && runtime_.wait(std::chrono::milliseconds{1}))
    for (auto& event : runtime_.poll())
      keep(std::move(event));
}

std::vector<notice> runtime_link::take_notices() {
  const auto timed = stopwatch{spent_.news};
  for (auto& event : runtime_.poll())
    keep(std::move(event));
  return std::exchange(notices_, {});
}

std::vector<cache_event> runtime_link::take_events() {
  const auto timed = stopwatch{spent_.news};
  auto answer = await<events_answer>(runtime_.take_events(), "take_events");
  return answer ? std::move(answer->events) : std::vector<cache_event>{};
}

stats runtime_link::get_stats() {
  const auto timed = stopwatch{spent_.news};
  const auto answer = await<stats_answer>(runtime_.get_stats(), "get_stats");
  if (!answer)
    throw replay_failure{"get_stats was refused: " + first_failure_};
  return answer->values;
}

copy_work runtime_link::get_copies() {
  const auto timed = stopwatch{spent_.news};
  auto res = copy_work{};
  for_each_rank([](rank& side) { side.get_stats(); });
  for_each_rank([&](rank& side) {
    const auto answer = await<rank_stats>(side, "get_stats");
    res.bytes += answer.copied_bytes;
    res.time += answer.copy_time;
  });
  return res;
}

std::size_t runtime_link::close() {
  const auto timed = stopwatch{spent_.calls};
  for_each_rank([](rank& side) { side.unregister_kv(); });
  for_each_rank(
    [this](rank& side) { await<kv_unregistered>(side, "unregister_kv"); });
  const auto answer
    = await<call_done>(runtime_.shutdown(std::chrono::seconds{10}), "shutdown");
  return answer ? answer->in_flight.size() : 0;
}

std::chrono::nanoseconds runtime_link::take_spent() noexcept {
  return spent_.calls - std::exchange(taken_, spent_.calls);
}

// -- helpers ------------------------------------------------------------------

template <class Answer>
std::optional<Answer> runtime_link::await(ticket_id ticket, const char* what) {
  auto res = std::optional<Answer>{};
  auto refused = false;
  for (auto empty = std::int64_t{0};;) {
    for (auto& event : runtime_.poll()) {
      if (auto* answer = std::get_if<Answer>(&event);
          answer != nullptr && answer->ticket == ticket) {
        res = std::move(*answer);
        continue;
      }
      const auto* failed = std::get_if<call_failed>(&event);
      refused = refused || (failed != nullptr && failed->ticket == ticket);
      keep(std::move(event));
    }
    if (res || refused)
      return res;
    if (!runtime_.wait(glance) && ++empty > patience)
      throw replay_failure{std::string{"no answer to "} + what
                           + " within a minute"};
  }
}

void runtime_link::keep(engine_event event) {
  if (auto* done = std::get_if<load_done>(&event))
    notices_.emplace_back(*done);
  else if (auto* failed = std::get_if<load_failed>(&event))
    notices_.emplace_back(std::move(*failed));
  else if (auto* released = std::get_if<blocks_released>(&event))
    notices_.emplace_back(std::move(*released));
  else if (auto* refused = std::get_if<call_failed>(&event))
    count_failure(refused->reason);
  else if (std::holds_alternative<overload>(event))
    ++overloads_;
  else if (std::holds_alternative<rank_lost>(event))
    ++lost_ranks_;
}

void runtime_link::count_failure(const error& reason) {
  if (failed_calls_++ == 0)
    first_failure_ = reason.text;
}

void runtime_link::for_each_rank(const std::function<void(rank&)>& call) {
  for (auto id = rank_id{0}; id < ranks_; ++id)
    call(runtime_.local_rank(id));
}

template <class Answer>
Answer runtime_link::await(rank& side, const char* what) {
  for (auto empty = std::int64_t{0};;) {
    for (auto& event : side.poll()) {
      if (auto* answer = std::get_if<Answer>(&event))
        return std::move(*answer);
      if (const auto* failed = std::get_if<rank_failed>(&event))
        throw replay_failure{std::string{what} + ": " + failed->reason.text};
    }
    if (!side.wait(glance) && ++empty > patience)
      throw replay_failure{std::string{"no answer to "} + what
                           + " within a minute"};
  }
}

} // namespace kvtide::replay
