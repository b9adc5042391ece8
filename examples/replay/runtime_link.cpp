// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/runtime_link.hpp"

#include "examples/replay/replay_failure.hpp"
#include "examples/replay/runtime_options.hpp"

#include <chrono>
#include <thread>
#include <utility>

namespace kvtide::replay {

namespace {

// Nothing the runtime does takes longer, short of a fault. Counted in glances:
// the clock goes on while the process is stopped, and the runtime does not.
constexpr auto glance = std::chrono::milliseconds{100};
constexpr auto patience = std::chrono::seconds{60} / glance;
constexpr auto join_pause = std::chrono::milliseconds{5};

runtime start(const replay_options& opts, const std::shared_ptr<network>& net) {
  auto what = make_runtime_options(opts);
  what.network = net;
  auto res = runtime::start(what);
  if (!res)
    throw bad_configuration{res.failure().text};
  return std::move(res).value();
}

} // namespace

runtime_link::runtime_link(const replay_options& opts,
                           const std::shared_ptr<network>& net,
                           runtime_time& spent, outage_log& outages)
  : runtime_(start(opts, net)), opts_(opts), kind_(opts.kind()), spent_(spent),
    outages_(outages) {
  // nop
}

void runtime_link::await_ranks(const join_watch& watch) {
  if (!opts_.has_remote_ranks())
    return;
  const auto until = std::chrono::steady_clock::now()
                   + std::chrono::seconds{opts_.join_timeout_s};
  while (get_stats().host_slots == 0) {
    if (watch && !watch("waits for all ranks to join"))
      throw given_up{"interrupted"};
    if (std::chrono::steady_clock::now() > until)
      throw bad_configuration{
        "--join-timeout: a rank has not joined; its process says why"};
    std::this_thread::sleep_for(join_pause);
  }
}

// -- requests -----------------------------------------------------------------

void runtime_link::add(add_request call) {
  const auto timed = call_watch{spent_, "add"};
  runtime_.add(std::move(call));
}

void runtime_link::extend(extend_keys call) {
  const auto timed = call_watch{spent_, "extend"};
  runtime_.extend(std::move(call));
}

lookup_hit runtime_link::lookup(const lookup_row& row) {
  const auto timed = call_watch{spent_, "lookup"};
  auto answer = await<lookup_answer>(runtime_.lookup({row}), "lookup");
  if (!answer || answer->hits.size() != 1)
    return {row.request, false, 0, 0};
  return answer->hits.front();
}

void runtime_link::decline(promise_id promise) {
  const auto timed = call_watch{spent_, "decline"};
  runtime_.decline(promise);
}

void runtime_link::allocate(allocated call) {
  const auto timed = call_watch{spent_, "allocate"};
  runtime_.allocate(std::move(call));
}

finish_answer runtime_link::finish(const finish_call& call) {
  const auto timed = call_watch{spent_, "finish"};
  auto answer = await<finish_answer>(runtime_.finish(call), "finish");
  return answer ? std::move(*answer) : finish_answer{0, call.request, {}};
}

// -- steps --------------------------------------------------------------------

step_plan runtime_link::step(step_call call) {
  const auto timed = call_watch{spent_, "step"};
  const auto id = call.step;
  auto answer = await<step_plan>(runtime_.step(std::move(call)), "step");
  // Without a plan the ranks cannot go on.
  if (!answer || answer->step != id)
    throw replay_failure{"step " + std::to_string(id)
                         + " was refused: " + first_failure_};
  return std::move(*answer);
}

void runtime_link::outputs(outputs_call call) {
  const auto timed = call_watch{spent_, "outputs"};
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

std::size_t runtime_link::close() {
  const auto timed = stopwatch{spent_.waits};
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
  else if (const auto* lost = std::get_if<rank_lost>(&event))
    outages_.link_lost(lost->rank);
  else if (const auto* back = std::get_if<rank_back>(&event))
    outages_.link_back(back->rank, back->same_life);
}

void runtime_link::count_failure(const error& reason) {
  if (failed_calls_++ == 0)
    first_failure_ = reason.text;
}

} // namespace kvtide::replay
