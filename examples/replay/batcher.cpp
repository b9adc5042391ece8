// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/batcher.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::replay {

bool batcher::fits(token_count tokens) const {
  const auto& shape = opts_.shape;
  auto blocks = shape.blocks_for(tokens);
  // A window holds what one step computes and what the first of these tokens
  // attends to.
  if (shape.groups() > 1)
    blocks += std::min(
      blocks, shape.blocks_for(shape.window(1) + opts_.token_budget) + 1);
  return blocks <= tables_.pool().size();
}

std::vector<block_part> batcher::parts_of(const sequence& seq,
                                          token_count first,
                                          token_count last) const {
  auto res = std::vector<block_part>{};
  add_parts(seq, first, last, res);
  return res;
}

void batcher::enqueue(const sequence_ptr& seq) {
  seq->tables.assign(opts_.shape.groups(), {});
  waiting_.push_back(seq);
}

batch batcher::plan() {
  auto next = batch{};
  next.call.preempted = std::exchange(preempted_, {});
  budget_ = opts_.token_budget;
  plan_running(next);
  // Who had to take blocks away has none to give.
  if (next.call.preempted.empty())
    plan_waiting(next);
  return next;
}

// -- running requests ---------------------------------------------------------

void batcher::plan_running(batch& next) {
  for (auto index = std::size_t{0}; index < running_.size() && budget_ > 0;
       ++index) {
    const auto seq = running_[index];
    const auto count = std::min(seq->due(), budget_);
    if (count <= 0)
      continue;
    tables_.leave_window(*seq);
    while (!seq->waiting
           && !tables_.grow(*seq, seq->computed + count, seq->computed)) {
      // The newest one cannot be in this step yet.
      const auto victim = running_.back();
      next.call.preempted.push_back(victim->id);
      preempt(victim);
    }
    if (!seq->waiting)
      add_row(next, seq, count);
  }
}

void batcher::add_row(batch& next, const sequence_ptr& seq, token_count count) {
  auto row = step_row{};
  row.request = seq->id;
  row.computed = seq->computed;
  row.scheduled = count;
  row.known = seq->known;
  row.kind = row_kind::running;
  if (seq->blocks_sent.empty()) {
    row.kind = seq->stepped ? row_kind::resumed : row_kind::fresh;
    seq->blocks_sent.assign(seq->tables.size(), 0);
    add_parts(*seq, 0, seq->local, next.reads);
  }
  auto grown = false;
  for (auto group = std::size_t{0}; group < seq->tables.size(); ++group)
    grown = grown || seq->tables[group].size() > seq->blocks_sent[group];
  for (auto group = std::size_t{0}; grown && group < seq->tables.size();
       ++group) {
    const auto& table = seq->tables[group];
    auto& sent = seq->blocks_sent[group];
    row.new_blocks.emplace_back(
      table.begin() + static_cast<std::ptrdiff_t>(sent), table.end());
    sent = table.size();
  }
  next.call.rows.push_back(std::move(row));
  add_parts(*seq, seq->computed, seq->computed + count, next.writes);
  const auto samples = seq->computed + count == seq->known + seq->sampling;
  next.rows.push_back({seq, seq->life, seq->computed, count, samples,
                       next.writes.size(), next.reads.size()});
  seq->stepped = true;
  seq->computed += count;
  seq->sampling += samples ? 1 : 0;
  budget_ -= count;
  tables_.publish(*seq);
}

void batcher::add_parts(const sequence& seq, token_count first,
                        token_count last,
                        std::vector<block_part>& parts) const {
  const auto size = opts_.shape.block_tokens();
  for (auto group = std::size_t{0}; group < seq.tables.size(); ++group)
    for (auto at = first; at < last;) {
      const auto index = static_cast<std::size_t>(at / size);
      const auto start = at / size * size;
      const auto end = std::min(start + size, last);
      if (const auto block = seq.tables[group][index]; block != no_block)
        parts.push_back({static_cast<group_id>(group), index, block, at - start,
                         end - start});
      at = end;
    }
}

void batcher::preempt(const sequence_ptr& seq) {
  running_.erase(std::find(running_.begin(), running_.end(), seq));
  tables_.release(*seq, order_of(*seq));
  counts_.preempted += seq->life == 0 ? 1 : 0;
  ++counts_.preemptions;
  ++seq->life;
  seq->preempted = true;
  seq->waiting = true;
  seq->computed = 0;
  seq->sampling = 0;
  seq->local = 0;
  seq->blocks_sent.clear();
  waiting_.push_front(seq);
}

// -- waiting requests ---------------------------------------------------------

void batcher::plan_waiting(batch& next) {
  for (auto seq = waiting_.begin();
       seq != waiting_.end() && budget_ > 0
       && running_.size() + loading_ < opts_.max_running;) {
    switch (admit(next, *seq)) {
      case verdict::admitted:
        seq = waiting_.erase(seq);
        break;
      case verdict::later:
        ++seq;
        break;
      case verdict::no_room:
        return;
    }
  }
}

batcher::verdict batcher::admit(batch& next, const sequence_ptr& seq) {
  const auto local = tables_.find_prefix(seq->text, seq->known - 1);
  const auto hit = link_.lookup({seq->id, local, seq->known});
  seq->deferred = hit.ask_again;
  if (hit.ask_again) {
    ++counts_.deferrals;
    return verdict::later;
  }
  const auto external = seq->load_refused ? 0 : hit.tokens;
  const auto ready = local + external;
  const auto count = external > 0 ? 0 : std::min(seq->known - ready, budget_);
  tables_.take_prefix(*seq, local);
  if (!tables_.grow(*seq, ready + count, ready)) {
    tables_.release(*seq, block_pool::reuse::last);
    // Both are right: to say so, or to ask again later.
    if (hit.promise != 0 && seq->id % 2 == 0)
      link_.decline(hit.promise);
    return verdict::no_room;
  }
  if (external == 0 && hit.promise != 0)
    link_.decline(hit.promise);
  if (!seq->admitted && !seq->revisit) {
    counts_.prompt_tokens += seq->prompt;
    counts_.device_tokens += local;
    counts_.loaded_tokens += external;
  }
  seq->admitted = true;
  seq->waiting = false;
  seq->local = local;
  seq->ready = ready;
  seq->computed = local;
  tell_blocks(*seq, external);
  if (external > 0) {
    seq->loading = true;
    ++loading_;
    next.loading.push_back(seq);
  } else {
    running_.push_back(seq);
    add_row(next, seq, count);
  }
  return verdict::admitted;
}

void batcher::tell_blocks(const sequence& seq, token_count external) {
  const auto cached
    = static_cast<std::size_t>(seq.local / opts_.shape.block_tokens());
  auto call = allocated{seq.id, external, seq.tables, {}};
  for (const auto& table : seq.tables) {
    auto& hashed = call.hashed.emplace_back(table.size(), std::uint8_t{0});
    for (auto index = std::size_t{0}; index < cached; ++index)
      hashed[index] = table[index] != no_block ? 1 : 0;
  }
  link_.allocate(std::move(call));
}

// -- loads --------------------------------------------------------------------

void batcher::load_ended(const sequence_ptr& seq, token_count tokens) {
  --loading_;
  seq->loading = false;
  // The last known token is computed in any case: its output is what a step is
  // for.
  seq->computed = std::min(tokens, seq->known - 1);
  running_.push_back(seq);
  tables_.publish(*seq);
}

void batcher::load_failed(const sequence_ptr& seq,
                          const std::vector<block_id>& late) {
  --loading_;
  seq->loading = false;
  seq->wasted = false;
  seq->load_refused = true;
  seq->waiting = true;
  seq->computed = 0;
  seq->local = 0;
  tables_.release(*seq, order_of(*seq), late);
  reserve(seq->id, late);
  waiting_.push_front(seq);
}

// -- a rank was away ----------------------------------------------------------

std::vector<request_id> batcher::compute_all_again() {
  auto res = std::exchange(preempted_, {});
  // From the end: the oldest one comes first again.
  while (!running_.empty()) {
    const auto last = running_.back();
    res.push_back(last->id);
    preempt(last);
  }
  tables_.forget_contents();
  return res;
}

void batcher::load_wasted(const sequence_ptr& seq) {
  --loading_;
  seq->loading = false;
  seq->wasted = false;
  running_.push_back(seq);
  preempted_.push_back(seq->id);
  preempt(seq);
}

// -- the end ------------------------------------------------------------------

void batcher::publish(sequence& seq) {
  tables_.publish(seq);
}

void batcher::remove(const sequence_ptr& seq,
                     const std::vector<block_id>& held) {
  if (seq->loading)
    --loading_;
  else if (seq->waiting)
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), seq));
  else
    running_.erase(std::find(running_.begin(), running_.end(), seq));
  tables_.release(*seq, order_of(*seq), held);
  reserve(seq->id, held);
}

bool batcher::released(request_id request,
                       const std::vector<block_id>& blocks) {
  const auto free = reserved_.remove(request, blocks);
  tables_.release(free);
  return free.size() == blocks.size();
}

void batcher::reserve(request_id request, const std::vector<block_id>& blocks) {
  counts_.held_blocks += reserved_.add(request, blocks);
}

block_pool::reuse batcher::order_of(const sequence& seq) noexcept {
  return seq.quick_reuse ? block_pool::reuse::first : block_pool::reuse::last;
}

} // namespace kvtide::replay
