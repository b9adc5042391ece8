// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/engine.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>
#include <variant>

namespace kvtide::replay {

namespace {

#ifdef KVTIDE_FAULT_NO_LOAD_WAIT
// A test build: shows that the comparison of loaded bytes can fail.
constexpr bool waits_for_loads = false;
#else
constexpr bool waits_for_loads = true;
#endif

constexpr nanoseconds_t millisecond = 1'000'000;
// Empty steps at the end, until nothing is in flight.
constexpr int drain_steps = 20'000;

std::vector<kv_arena> make_arenas(const replay_options& opts) {
  auto res = std::vector<kv_arena>{};
  for (auto rank = rank_id{0}; rank < opts.ranks; ++rank) {
    auto arena = opts.on_gpu()
                 ? kv_arena::create_on_gpu(opts.shape, rank, opts.device_index)
                 : kv_arena::create(opts.shape, rank);
    if (!arena)
      throw bad_configuration{arena.failure().text};
    res.push_back(std::move(arena).value());
  }
  return res;
}

} // namespace

engine::engine(const replay_options& opts, const std::vector<trace_row>& rows,
               observer watch)
  : opts_(opts), rows_(rows), watch_(std::move(watch)),
    arenas_(make_arenas(opts_)), link_(opts_, arenas_),
    content_(opts_.shape, arenas_), batcher_(opts_, link_, counts_),
    trouble_(opts_.seed, opts_.abort_rate),
    jobs_(counts_, opts_.shape.block_bytes() * opts_.ranks),
    next_revisit_(rows.size() + 1) {
  // nop
}

report engine::run() {
  const auto start = std::chrono::steady_clock::now();
  while (!over())
    turn();
  drain();
  auto res = make_report();
  res.left.jobs_at_shutdown = link_.close();
  res.failed_calls = link_.failed_calls() + foreign_releases_;
  res.first_failure = link_.first_failure();
  res.times.wall_seconds
    = std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
        .count();
  res.times.runtime = link_.spent();
  return res;
}

// -- the loop -----------------------------------------------------------------

bool engine::over() const {
  return next_row_ == rows_.size() && revisits_.empty() && live_.empty()
      && in_flight_.empty() && finished_.empty();
}

void engine::turn() {
  while (!in_flight_.empty() && in_flight_.front().end <= now_)
    complete();
  hear();
  arrive();
  strike(moment::before_plan);
  const auto depth = std::size_t{opts_.async ? 2u : 1u};
  const auto computes = in_flight_.size() < depth && plan();
  if (!computes || in_flight_.size() >= depth)
    pass_time();
  if (!interrupted_
      && !watch_({rows_ended_, rows_.size(), now_, counts_.steps})) {
    interrupted_ = true;
    next_row_ = rows_.size();
    revisits_.clear();
    while (!live_.empty()) {
      const auto seq = live_.begin()->second;
      abort(seq);
    }
  }
}

void engine::hear() {
  for (const auto& heard : link_.take_notices())
    std::visit([this](const auto& what) { handle(what); }, heard);
  if (jobs_.stores() > 0)
    jobs_.heard(link_.take_events(), next_step_);
}

void engine::arrive() {
  for (; next_row_ < rows_.size() && rows_[next_row_].arrival <= now_;
       ++next_row_)
    add_row(next_row_);
  while (!revisits_.empty() && revisits_.begin()->first <= now_) {
    add(revisits_.begin()->second);
    revisits_.erase(revisits_.begin());
  }
}

// Answers whether compute was enqueued.
bool engine::plan() {
  auto next = batcher_.plan();
  for (const auto& seq : next.loading)
    if (!waits_for_loads)
      load_ready(seq, seq->ready);
    else if (trouble_.strikes(*seq, moment::after_allocation))
      abort(seq);
  const auto computes = !next.rows.empty();
  // An empty step carries news, or lets a waiting engine look again.
  if (computes || !finished_.empty() || !next.call.preempted.empty()
      || (!live_.empty() && in_flight_.empty())) {
    issue(std::move(next));
    strike(moment::after_issue);
  }
  return computes;
}

void engine::pass_time() {
  while (!in_flight_.empty() && in_flight_.front().end <= now_)
    complete();
  if (!in_flight_.empty()) {
    complete();
    return;
  }
  auto next = std::numeric_limits<nanoseconds_t>::max();
  if (next_row_ < rows_.size())
    next = rows_[next_row_].arrival;
  if (!revisits_.empty())
    next = std::min(next, revisits_.begin()->first);
  if (!live_.empty()) {
    next = std::min(next, now_ + opts_.step_ms * millisecond);
    link_.rest();
  }
  if (next > now_ && next < std::numeric_limits<nanoseconds_t>::max()) {
    link_.advance(next);
    now_ = next;
  }
}

void engine::drain() {
  for (auto round = 0; round < drain_steps; ++round) {
    issue({});
    complete();
    now_ += opts_.step_ms * millisecond;
    link_.advance(now_);
    link_.rest();
    hear();
    const auto now = link_.get_stats();
    if (now.jobs_in_flight == 0 && now.tracked_requests == 0
        && now.quarantined_slots == 0 && batcher_.reserved_blocks() == 0)
      return;
  }
}

// -- steps --------------------------------------------------------------------

void engine::issue(batch work) {
  work.call.step = next_step_++;
  work.call.finished = std::exchange(finished_, {});
  const auto plan = link_.step(work.call);
  jobs_.planned(plan);
  const auto ready = link_.begin_step(plan);
  const auto free_at = std::max(now_, compute_end_);
  const auto start = std::max(free_at, ready.not_before);
  if (!plan.flush.empty() && ready.not_before > now_) {
    ++counts_.flush_waits;
    counts_.flush_delays += ready.not_before > free_at ? 1 : 0;
  }
  ++counts_.steps;
  // The compute stream waits for the copies even if there is nothing to
  // compute.
  compute_end_ = start;
  if (work.rows.empty()) {
    ++counts_.empty_steps;
  } else {
    compute_end_ += opts_.step_ms * millisecond;
    // Nobody can act for the kernels while the real clock runs. On a GPU they
    // are only enqueued here, behind the fence and before the step's end.
    if (!opts_.simulated())
      compute(work);
  }
  link_.end_step(plan.step, compute_end_);
  in_flight_.push_back({std::move(work), compute_end_});
  const auto spent = link_.take_spent().count();
  step_ns_.push_back(static_cast<std::uint64_t>(spent));
}

void engine::compute(const batch& work) {
  auto part = work.writes.begin();
  for (const auto& row : work.rows)
    for (const auto end
         = work.writes.begin() + static_cast<std::ptrdiff_t>(row.writes_end);
         part != end; ++part)
      content_.write(row.seq->text, *part);
  part = work.reads.begin();
  for (const auto& row : work.rows)
    for (const auto end
         = work.reads.begin() + static_cast<std::ptrdiff_t>(row.reads_end);
         part != end; ++part)
      content_.check(row.seq->text, *part, row.seq->id,
                     check_reason::found_on_device);
}

void engine::complete() {
  const auto done = std::move(in_flight_.front());
  in_flight_.pop_front();
  if (!done.work.rows.empty() && opts_.simulated()) {
    // Kernels write until the very end, and no copy that is ordered behind
    // them may have begun by then.
    link_.advance(done.end - 1);
    compute(done.work);
  }
  if (done.end > now_) {
    link_.advance(done.end);
    now_ = done.end;
  }
  // There are no outputs before compute is over.
  for (const auto& arena : arenas_)
    if (auto* lane = arena.lane())
      lane->finish();
  take_outputs(done.work);
}

void engine::take_outputs(const batch& work) {
  auto call = outputs_call{work.call.step, {}};
  auto ended = std::vector<const batch_row*>{};
  for (const auto& row : work.rows) {
    auto& seq = *row.seq;
    if (seq.ended)
      continue;
    const auto same_life = seq.life == row.life;
    if (row.samples) {
      ++seq.known;
      seq.sampling -= same_life ? 1 : 0;
      send_hashes(seq);
      if (same_life)
        batcher_.publish(seq);
    }
    call.rows.push_back(
      {seq.id, seq.known, same_life ? row.first + row.count : 0});
    if (seq.known == seq.prompt + seq.output)
      ended.push_back(&row);
  }
  if (!call.rows.empty())
    link_.outputs(std::move(call));
  for (const auto* row : ended) {
    if (row->seq->life == row->life)
      check_finished(*row->seq, row->first + row->count);
    counts_.finished += row->seq->revisit ? 0 : 1;
    plan_revisit(*row->seq);
    end(row->seq,
        row->seq->stops ? finish_reason::stop : finish_reason::length);
  }
}

void engine::check_finished(const sequence& seq, token_count tokens) {
  for (const auto& part : batcher_.parts_of(seq, 0, tokens))
    content_.check(seq.text, part, seq.id, check_reason::finished);
}

report engine::make_report() {
  auto res = report{};
  res.opts = opts_;
  res.rows = rows_.size();
  res.ideal = ideal_of(rows_);
  res.interrupted = interrupted_;
  counts_.simulated = now_;
  res.counts = counts_;
  res.notes = link_.notes();
  res.slots = link_.slots();
  res.slot_bytes = link_.slot_bytes();
  for (auto index = std::size_t{0}; index < check_reasons; ++index) {
    const auto reason = static_cast<check_reason>(index);
    res.compared_bytes[index] = content_.compared_bytes(reason);
    res.mismatches[index] = content_.mismatches(reason);
  }
  res.first_mismatch = content_.first_mismatch();
  res.runtime = link_.get_stats();
  res.copies = link_.get_copies();
  res.overloads = link_.overloads();
  const auto& pool = batcher_.tables().pool();
  res.left.requests = live_.size();
  res.left.blocks = pool.size() - pool.free_blocks();
  res.times.step_ns = std::move(step_ns_);
  std::sort(res.times.step_ns.begin(), res.times.step_ns.end());
  return res;
}

} // namespace kvtide::replay
