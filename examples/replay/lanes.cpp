// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/lanes.hpp"

#include "examples/replay/local_lane.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace kvtide::replay {

namespace {

// Between two looks at a socket where nobody listened.
constexpr auto call_pause = std::chrono::milliseconds{20};
constexpr auto refused_pause = std::chrono::seconds{1};
constexpr auto join_pause = std::chrono::milliseconds{5};

} // namespace

lanes::lanes(const replay_options& opts, runtime& rt, runtime_time& spent,
             outage_log& outages)
  : opts_(opts), spent_(spent), outages_(outages) {
  for (auto id = rank_id{0}; id < opts.ranks; ++id) {
    auto& at = seats_.emplace_back();
    at.rank = id;
    at.path = opts.lane_of(id);
    if (at.path.empty())
      at.way = std::make_unique<local_lane>(opts, id, rt.local_rank(id));
  }
}

// -- the start ----------------------------------------------------------------

void lanes::join(const join_watch& watch) {
  const auto until
    = wall_clock::now() + std::chrono::seconds{opts_.join_timeout_s};
  for (auto missing = names_of_missing(); !missing.empty();
       missing = names_of_missing()) {
    for (auto& at : seats_)
      if (!at.way)
        dial(at);
    const auto now = names_of_missing();
    if (now.empty())
      break;
    if (watch && !watch("waits for " + now))
      throw given_up{"interrupted"};
    if (wall_clock::now() > until)
      throw bad_configuration{"--join-timeout: " + now
                              + " did not come; start kvtide-worker with the "
                                "same --lane folder as --engine"};
    std::this_thread::sleep_for(join_pause);
  }
  for (auto& at : seats_)
    at.way->register_kv();
  for (auto& at : seats_) {
    note(at.way->await_registered());
    at.where = standing::here;
    if (auto* remote = dynamic_cast<remote_lane*>(at.way.get()))
      remote->set_limit(opts_.lane_limit());
  }
}

void lanes::dial(seat& at) {
  if (!at.caller) {
    if (wall_clock::now() < at.next_call)
      return;
    at.next_call = wall_clock::now() + call_pause;
    at.caller = remote_lane::dial(opts_, at.rank, at.path);
    if (!at.caller)
      return;
  }
  try {
    const auto life = at.caller->take_greeting();
    if (!life)
      return;
    const auto first = !at.life;
    const auto same = at.life == life;
    at.life = life;
    // The first registration may take its time.
    if (first)
      at.caller->set_limit(std::chrono::seconds{opts_.join_timeout_s});
    at.way = std::move(at.caller);
    at.where = same ? standing::catching_up : standing::fresh;
  } catch (const lane_lost&) {
    at.caller.reset();
  }
}

std::string lanes::names_of_missing() const {
  auto res = std::string{};
  for (const auto& at : seats_)
    if (!at.way)
      res += (res.empty() ? "rank " : ", ") + std::to_string(at.rank);
  return res;
}

void lanes::note(const kv_registered& what) {
  if (what.rank == 0)
    notes_ = what.notes;
  slots_ = slots_ == 0 ? what.slots : std::min(slots_, what.slots);
  slot_bytes_ = what.slot_bytes;
}

// -- steps --------------------------------------------------------------------

readiness lanes::begin_step(const step_plan& plan) {
  const auto timed = call_watch{spent_, "begin_step"};
  for_each([&plan](seat& at) { at.way->begin_step(plan.step, plan.bytes); });
  auto res = readiness{};
  for_each([&](seat& at) {
    const auto ready = at.way->await_ready(plan.step);
    res.waits = res.waits || ready.waits;
    res.not_before = std::max(res.not_before, ready.not_before);
  });
  return res;
}

void lanes::compute(const kv_work& work) {
  if (work.empty())
    return;
  checks_open_ = checks_open_ || !work.checks.empty();
  // Other processes first, so that all work at the same time. Who catches up
  // has nothing to be compared.
  for (const auto here : {false, true})
    for_each([&work, here](seat& at) {
      if (at.path.empty() == here && at.where == standing::here)
        at.way->compute(work);
    });
}

void lanes::end_step(step_id step, nanoseconds_t end) {
  const auto timed = call_watch{spent_, "end_step"};
  for_each([step, end](seat& at) { at.way->end_step(step, end); });
}

void lanes::settle() {
  checks_open_ = false;
  // All are asked first: who is silent is waited for once.
  for_each([](seat& at) { at.way->settle(); });
  for_each([](seat& at) { at.way->await_settled(); });
}

void lanes::settle_checks() {
  if (checks_open_)
    settle();
}

// -- ranks that are away ------------------------------------------------------

bool lanes::whole() const noexcept {
  return std::all_of(seats_.begin(), seats_.end(),
                     [](const seat& at) { return at.where == standing::here; });
}

bool lanes::look_for_lost() {
  auto found = false;
  for (auto& at : seats_) {
    if (at.where == standing::away)
      dial_again(at);
    found = found || at.where == standing::fresh
         || at.where == standing::catching_up;
  }
  return found;
}

void lanes::dial_again(seat& at) {
  try {
    dial(at);
  } catch (const bad_configuration&) {
    // It was started again as something else. Its process says so; here the
    // replay goes on.
    at.caller.reset();
    at.next_call = wall_clock::now() + refused_pause;
  }
}

void lanes::readmit() {
  const auto timed = call_watch{spent_, "register_kv"};
  const auto is_new = [](const seat& at) {
    return at.where == standing::fresh || at.where == standing::catching_up;
  };
  for (auto& at : seats_)
    if (is_new(at))
      guarded(at, [](seat& x) { x.way->register_kv(); });
  for (auto& at : seats_)
    if (is_new(at))
      guarded(at, [this](seat& x) {
        note(x.way->await_registered());
        outages_.process_back(x.rank, x.where == standing::catching_up);
        x.where = standing::here;
      });
}

void lanes::lose_process(const seat& first) {
  const auto life = first.life;
  for (auto& at : seats_)
    if (at.way && at.life == life)
      lose(at);
}

void lanes::lose(seat& at) {
  outages_.process_lost(at.rank);
  tally_.add(at.way->take_tally());
  at.way.reset();
  at.where = standing::away;
  at.next_call = wall_clock::now();
}

template <class What>
void lanes::guarded(seat& at, What what) {
  try {
    what(at);
  } catch (const lane_lost&) {
    // Who waited for one rank need not wait for its neighbours as well.
    lose_process(at);
  }
}

template <class What>
void lanes::for_each(What what) {
  for (auto& at : seats_)
    if (at.where == standing::here || at.where == standing::catching_up)
      guarded(at, what);
}

// -- what was found -----------------------------------------------------------

const check_tally& lanes::tally() {
  for (auto& at : seats_)
    if (at.way)
      tally_.add(at.way->take_tally());
  return tally_;
}

copy_work lanes::get_copies() {
  auto res = copy_work{};
  for_each([&res](seat& at) {
    const auto one = at.way->get_copies();
    res.bytes += one.bytes;
    res.time += one.time;
  });
  return res;
}

void lanes::unregister() {
  const auto timed = call_watch{spent_, "unregister_kv"};
  for_each([](seat& at) { at.way->unregister_kv(); });
  for_each([](seat& at) { at.way->await_unregistered(); });
}

} // namespace kvtide::replay
