// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the engine makes of each thing that the cache says. Nothing here ends a
/// request: the worst that a cache can do is to cost time.

#include "examples/serve/engine/engine_loop.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace serve {

namespace {

// How long the copies of a lost cache are waited for, and with them all
// requests. Copies take milliseconds, or do not end.
constexpr auto retirement = std::chrono::seconds{1};

} // namespace

// -- answers ------------------------------------------------------------------

void engine_loop::hear(const kvtide::lookup_answer& what) {
  asked_.erase(what.ticket);
  for (const auto& hit : what.hits) {
    const auto found = live_.find(hit.request);
    // Whoever ended meanwhile has given its promise up by that.
    if (found == live_.end() || found->second->where != phase::asking)
      continue;
    if (hit.ask_again)
      planner_.ask_again(*found->second, next_step_);
    else
      planner_.answered(*found->second, hit.tokens, hit.promise);
  }
}

void engine_loop::hear(const kvtide::finish_answer& what) {
  const auto found = parted_.find(what.ticket);
  if (found == parted_.end())
    return;
  tables_.release(found->second.table, what.held);
  keep_back(what.request, what.held);
  parted_.erase(found);
}

void engine_loop::hear(const kvtide::stats_answer& what) {
  stats_.cache = what.values;
  take_answer();
}

void engine_loop::hear(const kvtide::rank_stats& what) {
  stats_.rank = what;
  take_answer();
}

void engine_loop::take_answer() {
  if (answers_missing_ == 0 || --answers_missing_ > 0)
    return;
  answered_ = question_;
  if (board_.asked() > question_)
    ask_stats(); // Somebody came while this was under way.
}

void engine_loop::hear(const kvtide::call_done& what) {
  if (what.ticket == shutdown_)
    shutdown_.reset();
}

void engine_loop::hear(const kvtide::call_failed& what) {
  ++stats_.refused_calls;
  note_trouble(what.reason.text);
  if (const auto asked = asked_.find(what.ticket); asked != asked_.end()) {
    for (const auto& seq : asked->second)
      if (seq->where == phase::asking)
        planner_.answered(*seq, 0, 0);
    asked_.erase(asked);
  } else if (const auto gone = parted_.find(what.ticket);
             gone != parted_.end()) {
    tables_.release(gone->second.table);
    parted_.erase(gone);
  } else if (what.ticket == shutdown_) {
    shutdown_.reset();
  } else if (std::any_of(in_flight_.begin(), in_flight_.end(),
                         [&what](const step_in_flight& step) {
                           return step.ticket == what.ticket;
                         })) {
    // Nobody will ever say that this step may be launched.
    cache_broken_ = true;
  }
}

// -- loads --------------------------------------------------------------------

void engine_loop::hear(const kvtide::load_done& what) {
  ++stats_.loads_done;
  const auto found = live_.find(what.request);
  if (found == live_.end() || found->second->where != phase::loading)
    return;
  const auto& seq = found->second;
  planner_.load_ended(seq, seq->local + seq->external);
}

void engine_loop::hear(const kvtide::load_failed& what) {
  ++stats_.loads_failed;
  // A copy may still write: these are nobody's until `blocks_released`.
  const auto lost
    = what.use_new_blocks ? what.blocks : std::vector<kvtide::block_id>{};
  keep_back(what.request, lost);
  for (auto& [ticket, gone] : parted_)
    if (gone.request == what.request)
      for (auto& blocks : gone.table)
        for (auto& block : blocks)
          if (std::find(lost.begin(), lost.end(), block) != lost.end())
            block = kvtide::no_block;
  const auto found = live_.find(what.request);
  if (found == live_.end() || found->second->where != phase::loading)
    return;
  const auto seq = found->second;
  const auto from = what.use_new_blocks
                    ? seq->local
                    : std::clamp(what.first_bad_token, seq->local,
                                 seq->local + seq->external);
  if (tables_.mend(*seq, from, lost))
    return planner_.load_ended(seq, from);
  seq->no_load = true;
  planner_.take_blocks(seq);
}

void engine_loop::hear(const kvtide::blocks_released& what) {
  const auto found = held_.find(what.request);
  if (found == held_.end())
    return;
  auto& held = found->second;
  for (const auto block : what.blocks)
    if (const auto at = std::find(held.begin(), held.end(), block);
        at != held.end()) {
      held.erase(at);
      tables_.release({block});
    }
  if (held.empty())
    held_.erase(found);
}

void engine_loop::keep_back(kvtide::request_id request,
                            const std::vector<kvtide::block_id>& blocks) {
  if (blocks.empty())
    return;
  auto& held = held_[request];
  // Who goes on after a late load and ends before its copy does hears of the
  // same blocks twice.
  for (const auto block : blocks)
    if (std::find(held.begin(), held.end(), block) == held.end())
      held.push_back(block);
}

// -- the rank side ------------------------------------------------------------

void engine_loop::hear(const kvtide::step_ready& what) {
  for (auto& step : in_flight_)
    if (step.step == what.step && step.cache_life == cache_life_
        && step.compute)
      return launch(step, true);
}

void engine_loop::hear(const kvtide::rank_failed& what) {
  note_trouble(what.reason.text);
  cache_broken_ = true;
}

// -- trouble ------------------------------------------------------------------

void engine_loop::hear(const kvtide::rank_lost&) {
  note_trouble("the cache has lost its rank");
  cache_broken_ = true;
}

void engine_loop::hear(const kvtide::overload&) {
  note_trouble("the cache takes no more stores for now");
}

void engine_loop::hear(const kvtide::cache_lost&) {
  ++stats_.cache_troubles;
  note_trouble("the cache has lost its book and begins again, empty");
}

void engine_loop::hear(const kvtide::runtime_lost& what) {
  note_trouble(what.reason.text);
  cache_broken_ = true;
}

void engine_loop::retire_cache(std::chrono::milliseconds patience) {
  cache_broken_ = false;
  ++stats_.cache_troubles;
  // Compute tells the cache when it is over, and nobody would tell it that a
  // step may begin: so the launched ones end first, the others go on without
  // the cache once its copies have ended.
  compute_->drain();
  auto reserved = std::vector<kvtide::block_id>{};
  const auto reserve = [&reserved](block_table& table) {
    for (const auto& blocks : table)
      std::copy_if(
        blocks.begin(), blocks.end(), std::back_inserter(reserved),
        [](kvtide::block_id block) { return block != kvtide::no_block; });
    table.clear();
  };
  for (const auto& [id, seq] : live_)
    if (seq->where == phase::loading)
      reserve(seq->table);
  for (auto& [ticket, gone] : parted_)
    reserve(gone.table);
  for (const auto& [request, blocks] : held_)
    reserved.insert(reserved.end(), blocks.begin(), blocks.end());
  const auto life = cache_life_++;
  const auto& old
    = retired_
        .try_emplace(life, std::move(cache_), std::move(reserved),
                     [this, life] { inbox_.post(retired_cache_gone{life}); })
        .first->second;
  if (old.wait(patience))
    hear(retired_cache_gone{life});
  // A copy that still runs may be a store. What it reads of a block that is
  // written over goes to a pool that nobody will look into; what a load may
  // write is reserved.
  for (auto& step : in_flight_)
    if (step.compute)
      launch(step, false);
  compute_->drain(); // The next cache knows nothing of these steps.
  parted_.clear();
  held_.clear();
  asked_.clear();
  finished_.clear();
  shutdown_.reset();
  next_step_ = 0;
}

void engine_loop::restart_cache() {
  retire_cache(retirement);
  if (restarts_++ < opts_.cache_restarts) {
    auto started
      = cache_link::start(opts_, memory_, model_.fingerprint(), false);
    if (started)
      cache_ = std::move(started).value();
    else
      note_trouble(started.failure().text);
  }
  if (!cache_)
    cache_ = std::move(spare_);
  // As after a preemption, what the device's prefix cache has is found again.
  for (const auto& [id, seq] : live_) {
    planner_.take_blocks(seq);
    seq->stepped = false;
    tell_of(seq);
  }
  if (answers_missing_ > 0)
    ask_stats();
}

void engine_loop::note_trouble(std::string sentence) {
  stats_.last_trouble = std::move(sentence);
}

} // namespace serve
