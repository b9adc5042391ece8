// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the engine does by itself: its turns, and the results of steps.

#include "tests/explore/engine_model.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace kvtide::explore {

namespace {

/// Turns in a row without a scheduled row and without news.
constexpr std::uint32_t most_empty_turns = 12;

/// Turns of one nap in which something is called.
constexpr std::uint32_t most_nap_turns = 3;

} // namespace

// -- what may happen ----------------------------------------------------------

bool engine_model::can_turn(bool nothing_else) const {
  if (!away_.empty() || lookup_ == lookup_state::asked)
    return false;
  if (nap_ != nap::awake)
    return can_leave() || nap_turns_ < most_nap_turns;
  if (lookup_ != lookup_state::none)
    return true;
  if (over())
    return false;
  const auto open = last_step_ + 1 - first_open_;
  if (open > (what_.async ? 1u : 0u))
    return false;
  if (what_.stops_at_once && !probed_
      && with(phase::ended).size() == lives_.size()
      && arrived_ == what_.requests)
    return false;
  return !finished_.empty() || empty_turns_ < most_empty_turns || nothing_else;
}

bool engine_model::can_take_outputs() const {
  const auto oldest = flights_.find(first_open_);
  return oldest != flights_.end() && oldest->second.computed;
}

/// While it sleeps clients still go, and somebody may ask.
void engine_model::nap_turn() {
  if (can_leave() && (nap_turns_ == most_nap_turns || out_.decide(2) == 0))
    return leave();
  ++nap_turns_;
  (void)whim();
  if (lookup_ == lookup_state::none && out_.decide(2) > 0)
    look_up();
}

void engine_model::turn() {
  if (nap_ != nap::awake)
    return nap_turn();
  switch (lookup_) {
    case lookup_state::none:
      (void)whim();
      if (nap_ != nap::awake)
        return;
      arrive();
      look_up();
      break;
    case lookup_state::asked:
      return;
    case lookup_state::answered:
      admit();
      break;
    case lookup_state::used:
      if (whim())
        return; // The step comes later still.
      lookup_ = lookup_state::none;
      break;
  }
  if (lookup_ == lookup_state::none)
    plan_step();
}

bool engine_model::whim() {
  auto open = std::vector<std::function<void()>>{};
  const auto offer = [&](const char* kind, std::uint32_t most, auto action) {
    if (spent_[kind] < most)
      open.push_back([this, kind, action] {
        ++spent_[kind];
        action();
      });
  };
  for (auto id : alive())
    for (auto reason : {finish_reason::abort, finish_reason::error})
      offer("abort", what_.aborts, [this, id, reason] { abort(id, reason); });
  offer("reset", what_.resets, [this] { call_reset(); });
  for (auto id : alive())
    offer("explain", what_.explains, [this, id] { call(msg::explain{0, id}); });
  const auto rested = nap_ == nap::awake;
  if (rested)
    offer("sleep", what_.sleeps, [this] { call_sleep(); });
  const auto running
    = rested ? with(phase::running) : std::vector<request_id>{};
  for (auto id : running)
    offer("preempt", what_.preemptions, [this, id] { to_preempt_ = id; });
  for (auto id : running)
    if (const auto& x = lives_.at(id);
        !in_flight(id) && x.known > x.prompt && x.planned == x.known - 1)
      offer("edit", what_.edits, [this, id] { edit(id); });
  if (open.empty())
    return false;
  const auto picked = out_.decide(open.size() + 1);
  if (picked > 0)
    open[picked - 1]();
  return picked > 0;
}

void engine_model::arrive() {
  if (arrived_ >= what_.requests || alive().size() >= what_.alive)
    return;
  ++arrived_;
  const auto like = arrived_ - 1;
  const auto shared = like > 0 ? what_.shared : 0;
  // Lengths differ a little, so that chunks end here and there.
  const auto prompt = what_.prompt + arrived_ % 3;
  add(arrived_, like, shared, prompt, prompt + what_.outputs);
}

void engine_model::look_up() {
  auto rows = std::vector<lookup_row>{};
  for (auto id : with(phase::waiting))
    if (auto& x = lives_.at(id); x.sampling == 0 && !in_flight(id)) {
      x.state = phase::asked;
      x.promise = 0;
      x.planned = 0;
      rows.push_back({id, 0, x.known});
    }
  if (rows.empty())
    return;
  lookup_ = lookup_state::asked;
  if (what_.explains > 0 && out_.decide(2) > 0)
    for (const auto& row : rows)
      call(msg::explain{0, row.request});
  call(msg::lookup{0, std::move(rows)});
}

void engine_model::admit() {
  lookup_ = lookup_state::none;
  for (const auto& hit : std::exchange(hits_, {})) {
    const auto found = lives_.find(hit.request);
    if (found == lives_.end() || found->second.state != phase::asked)
      continue; // Aborted since.
    auto& x = found->second;
    x.state = phase::waiting;
    if (hit.ask_again)
      continue;
    if (x.must_hit >= 0 && hit.tokens != x.must_hit)
      found_.report("S2", "request " + std::to_string(hit.request) + " finds "
                            + std::to_string(hit.tokens) + " of "
                            + std::to_string(x.must_hit)
                            + " tokens that its twin has computed");
    if (x.must_find && hit.tokens == 0)
      found_.report("life", "what the last request stored is not found: the "
                            "runtime serves no longer");
    auto added = block_table{};
    const auto wants
      = hit.tokens > 0 ? hit.tokens : std::min(x.known, what_.budget);
    x.planned = hit.tokens;
    if (!blocks_.grow(x.table, wants, added)) {
      // It waits for blocks; what is held for it may go or stay.
      if (hit.promise != 0 && out_.decide(2) > 0)
        call(msg::decline{0, hit.promise});
      x.planned = 0;
      continue;
    }
    x.needs_table = true;
    x.promise = hit.promise;
    if (hit.tokens == 0) {
      x.state = phase::ready;
      continue;
    }
    // What lies before the window is not loaded.
    blocks_.slide(x.table, x.planned);
    x.planned = 0;
    x.state = phase::loading;
    x.loading = hit.tokens;
    auto taken = allocated{hit.request, hit.tokens, x.table, {}};
    for (const auto& list : x.table)
      taken.hashed.emplace_back(list.size(), 0);
    call(msg::allocate{0, std::move(taken)});
    lookup_ = lookup_state::used;
  }
}

void engine_model::plan_step() {
  auto next = step_call{};
  next.step = last_step_ + 1;
  auto made = flight{};
  if (const auto id = std::exchange(to_preempt_, std::nullopt);
      id && lives_.at(*id).state == phase::running)
    preempt(*id, next);
  auto order = with(phase::running);
  for (auto id : with(phase::ready))
    order.push_back(id);
  for (auto id : order)
    if (auto& x = lives_.at(id);
        x.state == phase::running || x.state == phase::ready)
      schedule(id, x, next, made);
  next.finished = std::exchange(finished_, {});
  if (!next.finished.empty() && out_.decide(2) > 0)
    next.finished.clear(); // They are planned all the same (S2).
  const auto empty = next.rows.empty();
  empty_turns_ = empty ? empty_turns_ + 1 : 0;
  last_step_ = next.step;
  flights_[last_step_] = std::move(made);
  call(msg::step{0, std::move(next)});
  out_.stepped(last_step_);
}

void engine_model::schedule(request_id id, life& x, step_call& call,
                            flight& made) {
  const auto total = x.known + x.sampling;
  const auto to = std::min(total, x.planned + what_.budget);
  if (to <= x.planned || total >= x.end)
    return;
  blocks_.slide(x.table, x.planned);
  auto added = block_table{};
  if (!make_room(id, to, call, added))
    return;
  auto row = step_row{};
  row.request = id;
  row.kind = !x.needs_table     ? row_kind::running
           : x.scheduled_before ? row_kind::resumed
                                : row_kind::fresh;
  row.new_blocks = x.needs_table ? x.table : added;
  row.computed = x.planned;
  row.scheduled = to - x.planned;
  row.known = x.known;
  made.rows.push_back({id, x.planned, to, x.table});
  const auto sampled = to == total;
  made.samples.push_back({id, sampled});
  x.sampling += sampled;
  x.planned = to;
  x.state = phase::running;
  x.scheduled_before = true;
  x.needs_table = false;
  call.rows.push_back(std::move(row));
}

/// Takes blocks from whoever came last and is not in this step, if need be.
bool engine_model::make_room(request_id id, token_count tokens, step_call& call,
                             block_table& added) {
  auto& x = lives_.at(id);
  while (!blocks_.grow(x.table, tokens, added)) {
    auto victim = std::optional<request_id>{};
    for (auto other : with(phase::running)) {
      const auto planned = std::any_of(
        call.rows.begin(), call.rows.end(),
        [other](const step_row& r) { return r.request == other; });
      if (other > id && !planned)
        victim = other;
    }
    if (!victim)
      return false;
    preempt(*victim, call);
  }
  return true;
}

void engine_model::preempt(request_id id, step_call& call) {
  auto& x = lives_.at(id);
  blocks_.give_back(x.table);
  x.state = phase::waiting;
  x.planned = 0;
  x.needs_table = true;
  call.preempted.push_back(id);
}

void engine_model::take_outputs() {
  const auto step = first_open_++;
  auto& taken = flights_.at(step);
  auto news = outputs_call{step, {}};
  auto ended = std::vector<std::pair<request_id, finish_reason>>{};
  for (const auto& [id, sampled] : taken.samples) {
    auto& x = lives_.at(id);
    x.sampling -= sampled;
    if (!sampled || x.state == phase::ended)
      continue;
    x.known += 1;
    send_keys(id);
    news.rows.push_back({id, x.known, x.planned});
    if (x.known >= x.end)
      ended.emplace_back(id, finish_reason::length);
    else if (!x.probe && out_.decide(2) > 0)
      ended.emplace_back(id, finish_reason::stop);
  }
  taken.rows.clear();
  taken.taken = true;
  forget_if_over(step);
  if (!news.rows.empty())
    call(msg::outputs{0, std::move(news)});
  for (const auto& [id, reason] : ended)
    end(id, reason);
}

} // namespace kvtide::explore
