// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/local_lane.hpp"

#include <cstdint>
#include <utility>
#include <variant>

namespace kvtide::replay {

namespace {

// Nothing the runtime does takes longer, short of a fault. Counted in glances:
// the clock goes on while the process is stopped, and the runtime does not.
constexpr auto glance = std::chrono::milliseconds{100};
constexpr auto short_glance = std::chrono::milliseconds{10};
constexpr auto patience = std::chrono::seconds{60};

kv_arena make_arena(const replay_options& opts, rank_id rank) {
  auto arena = opts.on_gpu()
               ? kv_arena::create_on_gpu(opts.shape, rank, opts.device_index)
               : kv_arena::create(opts.shape, rank);
  if (!arena)
    throw bad_configuration{arena.failure().text};
  return std::move(arena).value();
}

} // namespace

local_lane::local_lane(const replay_options& opts, rank_id id,
                       kvtide::rank& side)
  : local_lane(opts, id, side, nullptr) {
  // nop
}

local_lane::local_lane(const replay_options& opts, rank_id id,
                       kvtide::rank& side, std::function<void()> idle)
  : id_(id), side_(&side), kind_(opts.kind()), fingerprint_(opts.fingerprint),
    arena_(make_arena(opts, id)), content_(opts.shape, arena_, id),
    idle_(std::move(idle)) {
  // nop
}

// -- memory -------------------------------------------------------------------

void local_lane::register_kv() {
  side_->register_kv(arena_.describe(fingerprint_));
}

kv_registered local_lane::await_registered() {
  auto answer = await<kv_registered>("register_kv");
  if (answer.reason.code != ec::none)
    throw bad_configuration{answer.reason.text};
  return answer;
}

void local_lane::unregister_kv() {
  side_->unregister_kv();
}

void local_lane::await_unregistered() {
  await<kv_unregistered>("unregister_kv");
}

// -- steps --------------------------------------------------------------------

void local_lane::begin_step(step_id step, const std::string& plan) {
  // Its engine went away before the end of this one, and nothing was computed
  // that it could stand for.
  if (idle_ && open_)
    side_->end_step(*std::exchange(open_, std::nullopt), {});
  side_->begin_step(step, plan);
}

readiness local_lane::await_ready(step_id step) {
  auto ready = await<step_ready>("begin_step");
  for (; idle_ && ready.step != step; ready = await<step_ready>("begin_step"))
    side_->end_step(ready.step, {}); // Likewise.
  if (ready.step != step)
    throw replay_failure{"rank " + std::to_string(ready.rank)
                         + " is ready for step " + std::to_string(ready.step)
                         + " instead of " + std::to_string(step)};
  open_ = step;
  if (ready.wait_for.kind == fence::kind_t::none)
    return {};
  if (auto* stream = arena_.lane()) {
    stream->wait(ready.wait_for); // Before the next step begins (G2).
    return {true, 0};
  }
  if (kind_ != device_kind::host_virtual)
    throw replay_failure{"a fence without simulated time cannot be awaited"};
  return {true, static_cast<nanoseconds_t>(ready.wait_for.handle)};
}

void local_lane::compute(const kv_work& work) {
  for (const auto& span : work.writes)
    content_.write(span);
  for (const auto& what : work.checks)
    content_.check(what);
}

void local_lane::end_step(step_id step, nanoseconds_t end) {
  open_.reset();
  auto events = compute_events{};
  if (const auto* stream = arena_.lane()) {
    // Behind all that the step has enqueued, an empty one nothing (S6).
    const auto made = side_->record_event(stream->handle());
    if (!made)
      throw replay_failure{"record_event: " + made.failure().text};
    events.push_back(made.value());
  } else if (kind_ == device_kind::host_virtual) {
    // With the real clock the compute is over by now.
    events.push_back(static_cast<std::uint64_t>(end));
  }
  side_->end_step(step, std::move(events));
}

void local_lane::settle() {
  // Nothing is to be said.
}

void local_lane::await_settled() {
  if (auto* stream = arena_.lane())
    stream->finish();
}

check_tally local_lane::take_tally() {
  return content_.take_tally();
}

copy_work local_lane::get_copies() {
  side_->get_stats();
  const auto answer = await<rank_stats>("get_stats");
  return {answer.copied_bytes, answer.copy_time};
}

// -- helpers ------------------------------------------------------------------

template <class Answer>
Answer local_lane::await(const char* what) {
  const auto look = idle_ ? short_glance : glance;
  for (auto empty = std::int64_t{0};;) {
    for (auto& event : side_->poll())
      heard_.push_back(std::move(event));
    while (!heard_.empty()) {
      auto event = std::move(heard_.front());
      heard_.pop_front();
      if (auto* answer = std::get_if<Answer>(&event))
        return std::move(*answer);
      if (const auto* ready = std::get_if<step_ready>(&event))
        open_ = ready->step; // Its engine went away before it heard of this.
      if (const auto* failed = std::get_if<rank_failed>(&event);
          failed != nullptr && failed->reason.code != ec::scheduler_unreachable)
        throw replay_failure{std::string{what} + ": " + failed->reason.text};
    }
    if (idle_)
      idle_();
    if (!side_->wait(look) && ++empty > patience / look)
      throw replay_failure{std::string{"no answer to "} + what
                           + " within a minute"};
  }
}

} // namespace kvtide::replay
