// SPDX-License-Identifier: Apache-2.0

/// @file
/// The life of steps and requests: asked about, planned, launched, computed,
/// ended.

#include "examples/serve/engine/engine_loop.hpp"

#include <cassert>
#include <string_view>
#include <utility>

namespace serve {

// -- steps --------------------------------------------------------------------

void engine_loop::ask() {
  auto asking = planner_.to_ask(next_step_);
  if (asking.empty())
    return;
  auto rows = std::vector<kvtide::lookup_row>{};
  for (const auto& seq : asking)
    rows.push_back({seq->id, seq->local, seq->known()});
  asked_.emplace(cache_->calls().lookup(std::move(rows)), std::move(asking));
}

bool engine_loop::step(bool even_if_idle) {
  auto next = planner_.plan();
  for (const auto promise : next.declined)
    cache_->calls().decline(promise);
  // Who finished is planned in a step, so an idle engine makes one for them.
  const auto last_words = !finished_.empty() && in_flight_.empty();
  if (next.idle() && !last_words && !even_if_idle)
    return false;
  for (auto& call : next.allocated) {
    leave_queue(*live_.at(call.request));
    cache_->calls().allocate(std::move(call));
  }
  auto& made = in_flight_.emplace_back();
  made.number = next_number_++;
  made.cache_life = cache_life_;
  made.step = next_step_++;
  made.rows = std::move(next.rows);
  made.compute = std::move(next.compute);
  next.call.step = made.step;
  next.call.finished = std::exchange(finished_, {});
  made.ticket = cache_->calls().step(std::move(next.call));
  // Answered at once or when the step before it is launched and all is copied
  // that this one writes over (S5).
  cache_->side().begin_step(made.step);
  ++stats_.steps;
  return true;
}

void engine_loop::launch(step_in_flight& what, bool known_to_cache) {
  auto work = compute_work{what.number, std::move(*what.compute), {}};
  what.compute.reset();
  if (known_to_cache) {
    auto events = kvtide::compute_events{};
    auto& side = cache_->side();
    if (!work.rows.empty()) {
      const auto event = side.make_event();
      if (!event) { // More are pending than there are steps.
        note_trouble(event.failure().text);
        cache_broken_ = true;
        what.compute = std::move(work.rows);
        return;
      }
      events.push_back(event.value());
      work.over
        = [&side, handle = event.value()] { side.complete_event(handle); };
    }
    // Enqueued, not computed: copies of the next step wait for the event (S6).
    side.end_step(what.step, std::move(events));
  }
  compute_->enqueue(std::move(work));
}

void engine_loop::hear(const compute_done& what) {
  const auto done = std::move(in_flight_.front());
  in_flight_.pop_front();
  assert(done.number == what.number && !done.compute);
  auto call = kvtide::outputs_call{done.step, {}};
  auto token = what.sampled.begin();
  auto complete = std::vector<sequence_ptr>{};
  for (const auto& row : done.rows) {
    auto& seq = *row.seq;
    --seq.steps_in_flight;
    const auto same_life = seq.life == row.life;
    if (row.samples) {
      const auto sampled = *token++;
      seq.sampling -= same_life ? 1 : 0;
      if (seq.where == phase::ended)
        continue;
      // Also if it was preempted since: then it need not be computed again.
      take(seq, sampled);
      if (same_life)
        tables_.publish(seq);
    }
    if (seq.where == phase::ended)
      continue;
    call.rows.push_back({seq.id, seq.known(), same_life ? row.computed : 0});
    if (seq.known() == seq.length)
      complete.push_back(row.seq);
  }
  if (!call.rows.empty() && done.cache_life == cache_life_)
    cache_->calls().outputs(std::move(call));
  for (const auto& seq : complete)
    end(seq, completion_end::length);
}

// -- requests -----------------------------------------------------------------

void engine_loop::take(sequence& seq, token_id token) {
  const auto byte = static_cast<char>(token);
  seq.tokens.push_back(token);
  send_hashes(seq);
  ++stats_.output_tokens;
  if (seq.callbacks.on_text)
    seq.callbacks.on_text(std::string_view{&byte, 1});
}

void engine_loop::send_hashes(sequence& seq) {
  const auto seen = seq.hashed_tokens;
  auto made
    = seq.hasher.append(seq.tokens.data() + seen, seq.tokens.size() - seen);
  seq.hashed_tokens = seq.tokens.size();
  if (made.empty())
    return;
  auto call = kvtide::extend_keys{};
  call.request = seq.id;
  call.first = seq.hashes.size();
  seq.hashes.insert(seq.hashes.end(), made.begin(), made.end());
  call.hashes = std::move(made);
  cache_->calls().extend(std::move(call));
}

void engine_loop::tell_of(const sequence_ptr& seq) {
  auto call = kvtide::add_request{};
  call.request = seq->id;
  call.prompt_tokens = seq->prompt;
  call.known_tokens = seq->known();
  cache_->calls().add(std::move(call));
  if (seq->hashes.empty())
    return send_hashes(*seq);
  auto keys = kvtide::extend_keys{};
  keys.request = seq->id;
  keys.hashes = seq->hashes;
  cache_->calls().extend(std::move(keys));
}

void engine_loop::leave_queue(sequence& seq) {
  if (std::exchange(seq.in_queue, false))
    queued_.fetch_sub(1);
}

void engine_loop::end(const sequence_ptr& seq, completion_end why) {
  const auto natural = why == completion_end::length;
  const auto call = kvtide::finish_call{seq->id,
                                        natural ? kvtide::finish_reason::length
                                                : kvtide::finish_reason::abort,
                                        seq->known(), seq->computed};
  const auto ticket = cache_->calls().finish(call);
  finished_.push_back(call);
  planner_.remove(*seq);
  // Blocks are free when the cache has said so: a load may still write them.
  parted_.emplace(ticket, parted{seq->id, std::move(seq->table)});
  seq->table.clear();
  leave_queue(*seq);
  if (natural) {
    ++stats_.completed;
  } else {
    ++stats_.aborted;
    auto& where = seq->where == phase::loading ? stats_.aborted_loading
                : seq->where == phase::running ? stats_.aborted_running
                : seq->where == phase::asking  ? stats_.aborted_asking
                : seq->admitted_once           ? stats_.aborted_preempted
                                               : stats_.aborted_queued;
    ++where;
  }
  seq->where = phase::ended;
  live_.erase(seq->id);
  if (seq->callbacks.on_end)
    seq->callbacks.on_end(why);
  seq->callbacks = {};
}

} // namespace serve
