// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/engine.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
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
// Where nobody knows how many rows there will be, revisits are numbered from
// here.
constexpr request_id revisits_behind = request_id{1} << 40;

double seconds_since(std::chrono::steady_clock::time_point moment) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now()
                                       - moment)
    .count();
}

} // namespace

engine::engine(const replay_options& opts, const std::vector<trace_row>& rows,
               observer watch, const std::shared_ptr<network>& net,
               const join_watch& join)
  : opts_(opts), rows_(rows), watch_(std::move(watch)), plans_(opts.plan_log),
    link_(opts_, net, spent_, outages_), batcher_(opts_, link_, counts_),
    trouble_(opts_.seed, opts_.abort_rate),
    jobs_(counts_, opts_.shape.block_bytes() * opts_.ranks),
    next_revisit_(opts.repeat_seconds > 0 ? revisits_behind : rows.size() + 1) {
  lanes_.emplace(opts_, link_.whole(), spent_, outages_);
  lanes_->join(join);
  link_.await_ranks(join);
}

report engine::run() {
  start_ = last_issue_ = std::chrono::steady_clock::now();
  while (!over())
    turn();
  const auto last = std::chrono::steady_clock::now();
  drain();
  auto res = make_report();
  res.times.drain_seconds = seconds_since(last);
  lanes_->unregister();
  res.left.jobs_at_shutdown = link_.close();
  plans_.close();
  res.failed_calls = link_.failed_calls() + foreign_releases_;
  res.first_failure = link_.first_failure();
  res.times.wall_seconds = seconds_since(start_);
  res.times.runtime = spent_;
  return res;
}

// -- the loop -----------------------------------------------------------------

bool engine::has_rows() const {
  if (interrupted_)
    return false;
  return next_row_ < rows_.size()
      || (opts_.repeat_seconds > 0
          && std::chrono::steady_clock::now() - start_
               < std::chrono::seconds{opts_.repeat_seconds});
}

bool engine::is_full() const {
  // Whoever repeats a trace wants work all the time, and not more and more.
  return opts_.repeat_seconds > 0 && live_.size() >= opts_.max_running;
}

nanoseconds_t engine::next_arrival() const {
  const auto round = static_cast<nanoseconds_t>(next_row_ / rows_.size());
  return rows_[next_row_ % rows_.size()].arrival
       + round * (rows_.back().arrival + millisecond);
}

bool engine::over() const {
  return !has_rows() && revisits_.empty() && live_.empty() && in_flight_.empty()
      && finished_.empty();
}

void engine::turn() {
  while (!in_flight_.empty() && in_flight_.front().end <= now_)
    complete();
  hear();
  take_back_ranks();
  arrive();
  strike(moment::before_plan);
  const auto depth = std::size_t{opts_.async ? 2u : 1u};
  const auto computes = in_flight_.size() < depth && plan();
  if (!computes || in_flight_.size() >= depth)
    pass_time();
  if (!interrupted_
      && !watch_({rows_ended_, rows_.size(), now_, counts_.steps})) {
    interrupted_ = true;
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
  for (; has_rows() && !is_full() && next_arrival() <= now_; ++next_row_)
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
  if (has_rows() && !is_full())
    next = next_arrival();
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
    take_back_ranks();
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
  const auto last
    = std::exchange(last_issue_, std::chrono::steady_clock::now());
  longest_gap_
    = std::max<std::chrono::nanoseconds>(longest_gap_, last_issue_ - last);
  if (opts_.pace_us > 0) {
    std::this_thread::sleep_until(next_issue_);
    next_issue_ = std::chrono::steady_clock::now()
                + std::chrono::microseconds{opts_.pace_us};
  }
  lanes_->settle_checks();
  const auto plan = link_.step(work.call);
  plans_.note(plan);
  jobs_.planned(plan);
  const auto ready = lanes_->begin_step(plan);
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
  lanes_->end_step(plan.step, compute_end_);
  counts_.steps_without_cache += outages_.whole() ? 0 : 1;
  in_flight_.push_back({std::move(work), compute_end_});
  const auto spent = link_.take_spent().count();
  step_ns_.push_back(static_cast<std::uint64_t>(spent));
}

void engine::compute(const batch& work) {
  work_.clear();
  auto part = work.writes.begin();
  for (const auto& row : work.rows)
    for (const auto end
         = work.writes.begin() + static_cast<std::ptrdiff_t>(row.writes_end);
         part != end; ++part)
      split_into_spans(row.seq->text, *part, [this](const kv_span& span) {
        work_.writes.push_back(span);
      });
  part = work.reads.begin();
  for (const auto& row : work.rows)
    for (const auto end
         = work.reads.begin() + static_cast<std::ptrdiff_t>(row.reads_end);
         part != end; ++part)
      add_check(*row.seq, *part, check_reason::found_on_device);
  lanes_->compute(work_);
}

void engine::add_check(const sequence& seq, const block_part& part,
                       check_reason reason) {
  split_into_spans(seq.text, part, [&](const kv_span& span) {
    work_.checks.push_back({span, seq.id, reason, next_check_++});
  });
}

void engine::check(const sequence& seq, const std::vector<block_part>& parts,
                   check_reason reason) {
  work_.clear();
  for (const auto& part : parts)
    add_check(seq, part, reason);
  lanes_->compute(work_);
}

void engine::complete() {
  const auto done = std::move(in_flight_.front());
  in_flight_.pop_front();
  if (!done.work.rows.empty() && opts_.simulated()) {
    // Kernels write until the very end, and no copy that is ordered behind
    // them may have begun by then.
    link_.advance(done.end - 1);
    compute(done.work);
    lanes_->settle();
  }
  if (done.end > now_) {
    link_.advance(done.end);
    now_ = done.end;
  }
  // There are no outputs before compute is over.
  lanes_->settle();
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
      check(*row->seq, batcher_.parts_of(*row->seq, 0, row->first + row->count),
            check_reason::finished);
    counts_.finished += row->seq->revisit ? 0 : 1;
    plan_revisit(*row->seq);
    end(row->seq,
        row->seq->stops ? finish_reason::stop : finish_reason::length);
  }
}

// -- ranks that come back -----------------------------------------------------

// What was computed while a rank was away is not in its memory, and what it had
// before may be gone with its process. So all is computed again, and the
// runtime hears of that before it may read the rank's memory again.
void engine::take_back_ranks() {
  if (!lanes_->look_for_lost())
    return;
  while (!in_flight_.empty())
    complete();
  auto empty = batch{};
  empty.call.preempted = batcher_.compute_all_again();
  for (const auto& [id, seq] : live_)
    seq->wasted = seq->loading;
  issue(std::move(empty));
  complete();
  lanes_->readmit();
}

report engine::make_report() {
  auto res = report{};
  res.opts = opts_;
  res.rows = std::max(rows_.size(), next_row_);
  res.ideal = ideal_of(rows_);
  res.interrupted = interrupted_;
  counts_.simulated = now_;
  res.counts = counts_;
  res.notes = lanes_->notes();
  res.slots = lanes_->slots();
  res.slot_bytes = lanes_->slot_bytes();
  lanes_->settle();
  const auto& checks = lanes_->tally();
  res.compared_bytes = checks.compared_bytes;
  res.mismatches = checks.mismatches;
  res.first_mismatch = checks.first;
  res.runtime = link_.get_stats();
  res.copies = lanes_->get_copies();
  res.outages = outages_.all();
  res.overloads = link_.overloads();
  const auto& pool = batcher_.tables().pool();
  res.left.requests = live_.size();
  res.left.blocks = pool.size() - pool.free_blocks();
  res.left.reserved = batcher_.reserved_blocks();
  res.times.longest_gap = longest_gap_;
  res.times.step_ns = std::move(step_ns_);
  std::sort(res.times.step_ns.begin(), res.times.step_ns.end());
  return res;
}

} // namespace kvtide::replay
