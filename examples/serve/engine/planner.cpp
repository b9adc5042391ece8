// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/engine/planner.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace serve {

using kvtide::no_block;
using kvtide::row_kind;
using kvtide::token_count;

void planner::enqueue(const sequence_ptr& seq) {
  waiting_.emplace(seq->id, seq);
}

step_plan planner::plan() {
  auto next = step_plan{};
  budget_ = opts_.step_tokens;
  plan_running(next);
  // Who had to take blocks away has none to give.
  if (next.call.preempted.empty())
    plan_waiting(next);
  return next;
}

// -- running requests ---------------------------------------------------------

void planner::plan_running(step_plan& next) {
  for (auto at = running_.begin(); at != running_.end() && budget_ > 0;) {
    const auto seq = at->second;
    const auto count = std::min(seq->due(), budget_);
    if (count > 0) {
      tables_.leave_window(*seq);
      while (seq->where == phase::running
             && !tables_.grow(*seq, seq->computed + count, seq->computed))
        preempt(next);
      if (seq->where == phase::running)
        add_row(next, seq, count);
    }
    at = running_.upper_bound(seq->id);
  }
}

void planner::preempt(step_plan& next) {
  // The newest one; rows are added by age, so it has none in this step yet.
  const auto victim = std::prev(running_.end())->second;
  next.call.preempted.push_back(victim->id);
  take_blocks(victim);
  ++stats_.preemptions;
}

void planner::add_row(step_plan& next, const sequence_ptr& seq,
                      token_count count) {
  auto row = kvtide::step_row{};
  row.request = seq->id;
  row.computed = seq->computed;
  row.scheduled = count;
  row.known = seq->known();
  row.kind = row_kind::running;
  if (seq->blocks_sent.empty()) {
    row.kind = seq->stepped ? row_kind::resumed : row_kind::fresh;
    seq->blocks_sent.assign(tables_.groups(), 0);
  }
  auto grown = false;
  for (auto group = std::size_t{0}; group < tables_.groups(); ++group)
    grown = grown || seq->table[group].size() > seq->blocks_sent[group];
  for (auto group = std::size_t{0}; grown && group < tables_.groups();
       ++group) {
    const auto& table = seq->table[group];
    auto& sent = seq->blocks_sent[group];
    row.new_blocks.emplace_back(
      table.begin() + static_cast<std::ptrdiff_t>(sent), table.end());
    sent = table.size();
  }
  next.call.rows.push_back(std::move(row));

  const auto end = seq->computed + count;
  const auto samples = end == seq->known() + seq->sampling;
  auto work = compute_row{};
  work.first = static_cast<std::int32_t>(seq->computed);
  work.count = static_cast<std::int32_t>(count);
  work.tokens.assign(seq->tokens.begin() + seq->computed,
                     seq->tokens.begin() + std::min(end, seq->known()));
  work.sampled = seq->sampled;
  work.table = seq->table;
  work.samples = samples;
  next.compute.push_back(std::move(work));
  next.rows.push_back({seq, seq->life, end, samples});

  seq->stepped = true;
  seq->computed = end;
  seq->sampling += samples ? 1 : 0;
  ++seq->steps_in_flight;
  budget_ -= count;
  stats_.computed_tokens += static_cast<std::uint64_t>(count);
  tables_.publish(*seq);
}

// -- waiting requests ---------------------------------------------------------

std::vector<sequence_ptr> planner::to_ask(std::uint64_t next_step) {
  auto res = std::vector<sequence_ptr>{};
  auto busy = running_.size() + loading_;
  auto free = static_cast<std::ptrdiff_t>(tables_.pool().free_blocks());
  for (const auto& [id, seq] : waiting_)
    if (seq->where != phase::waiting) {
      free -= static_cast<std::ptrdiff_t>(missing(*seq));
      ++busy;
    }
  for (const auto& [id, seq] : waiting_) {
    if (busy >= opts_.max_batch)
      break;
    // Compute may still write what it had before it was preempted; its next
    // token is not known before that either.
    if (seq->where != phase::waiting || seq->steps_in_flight > 0
        || (seq->deferred && seq->asked_at >= next_step))
      continue;
    const auto before = tables_.pool().free_blocks();
    tables_.take_prefix(*seq);
    free -= static_cast<std::ptrdiff_t>(before - tables_.pool().free_blocks()
                                        + missing(*seq));
    if (free < 0) {
      // Nobody overtakes it, or it would wait for ever.
      tables_.release(seq->table);
      break;
    }
    seq->where = phase::asking;
    seq->deferred = false;
    ++busy;
    res.push_back(seq);
  }
  return res;
}

void planner::answered(sequence& seq, token_count tokens,
                       kvtide::promise_id promise) {
  seq.where = phase::answered;
  seq.external = tokens;
  seq.promise = promise;
}

void planner::ask_again(sequence& seq, std::uint64_t next_step) {
  tables_.release(seq.table);
  seq.where = phase::waiting;
  seq.deferred = true;
  seq.asked_at = next_step;
}

bool planner::has_deferred() const {
  return std::any_of(waiting_.begin(), waiting_.end(), [](const auto& entry) {
    return entry.second->deferred && entry.second->where == phase::waiting;
  });
}

void planner::plan_waiting(step_plan& next) {
  for (auto at = waiting_.begin(); at != waiting_.end() && budget_ > 0;) {
    const auto seq = at->second;
    if (seq->where != phase::answered) {
      ++at;
    } else if (admit(next, seq)) {
      at = waiting_.erase(at);
    } else {
      if (seq->promise != 0)
        next.declined.push_back(seq->promise);
      tables_.release(seq->table);
      seq->where = phase::waiting;
      return;
    }
  }
}

bool planner::admit(step_plan& next, const sequence_ptr& seq) {
  const auto external = seq->no_load ? 0 : seq->external;
  const auto ready = seq->local + external;
  const auto count = external > 0 ? 0 : std::min(seq->known() - ready, budget_);
  if (!tables_.grow(*seq, ready + count, ready))
    return false;
  if (external == 0 && seq->promise != 0)
    next.declined.push_back(seq->promise);
  stats_.prompt_tokens += static_cast<std::uint64_t>(seq->known());
  stats_.device_hit_tokens += static_cast<std::uint64_t>(seq->local);
  stats_.host_hit_tokens += static_cast<std::uint64_t>(external);
  seq->admitted_once = true;
  seq->external = external;
  seq->computed = seq->local;
  auto call = kvtide::allocated{seq->id, external, seq->table, {}};
  const auto cached
    = static_cast<std::size_t>(seq->local / opts_.tokens_per_block);
  for (const auto& blocks : seq->table) {
    auto& hashed = call.hashed.emplace_back(blocks.size(), std::uint8_t{0});
    for (auto index = std::size_t{0}; index < cached; ++index)
      hashed[index] = blocks[index] != no_block ? 1 : 0;
  }
  next.allocated.push_back(std::move(call));
  if (external > 0) {
    seq->where = phase::loading;
    ++loading_;
  } else {
    seq->where = phase::running;
    running_.emplace(seq->id, seq);
    add_row(next, seq, count);
  }
  return true;
}

std::size_t planner::missing(const sequence& seq) const {
  auto has = std::size_t{0};
  for (const auto& blocks : seq.table)
    has += static_cast<std::size_t>(
      std::count_if(blocks.begin(), blocks.end(),
                    [](kvtide::block_id block) { return block != no_block; }));
  const auto most = tables_.most_needed(seq.known(), opts_.step_tokens);
  return most > has ? most - has : 0;
}

// -- loads, the end -----------------------------------------------------------

void planner::load_ended(const sequence_ptr& seq, token_count tokens) {
  --loading_;
  seq->where = phase::running;
  // The last known token is computed in any case: its output is what a step is
  // for.
  seq->computed = std::min(tokens, seq->known() - 1);
  running_.emplace(seq->id, seq);
  tables_.publish(*seq);
}

void planner::take_blocks(const sequence_ptr& seq) {
  remove(*seq);
  tables_.release(seq->table);
  seq->where = phase::waiting;
  seq->computed = 0;
  seq->sampling = 0;
  seq->local = 0;
  seq->external = 0;
  seq->promise = 0;
  seq->deferred = false;
  seq->blocks_sent.clear();
  ++seq->life;
  enqueue(seq);
}

void planner::remove(const sequence& seq) {
  if (seq.where == phase::loading)
    --loading_;
  running_.erase(seq.id);
  waiting_.erase(seq.id);
}

} // namespace serve
