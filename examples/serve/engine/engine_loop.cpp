// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/engine/engine_loop.hpp"

#include <algorithm>
#include <array>
#include <poll.h>
#include <utility>
#include <variant>

namespace serve {

namespace {

// Steps that are planned and not over: the one that computes, and the next.
constexpr std::size_t steps_ahead = 2;

// Whoever was told to ask again does so in a later step. If nobody else needs a
// step, an empty one comes after this time.
constexpr auto ask_again_after = std::chrono::milliseconds{1};

// What the end may take beyond the deadline of `stop`.
constexpr auto grace = std::chrono::milliseconds{100};

kv_layout layout_of(const engine_options& opts) {
  return {model_shape{opts.variant},
          static_cast<std::size_t>(opts.tokens_per_block)};
}

} // namespace

engine_loop::engine_loop(const engine_options& opts, inbox& door,
                         stats_board& board, std::atomic<std::uint32_t>& queued)
  : opts_(opts), inbox_(door), board_(board), queued_(queued),
    model_(opts.variant, opts.seed, opts.max_tokens),
    memory_(layout_of(opts), opts.device_blocks),
    tables_(model_.shape(), opts.tokens_per_block, opts.device_blocks),
    planner_(opts_, tables_, stats_) {
  // nop
}

engine_loop::~engine_loop() = default;

kvtide::error engine_loop::start() {
  for (auto* place : {&spare_, &cache_}) {
    auto started = cache_link::start(opts_, memory_, model_.fingerprint(),
                                     place == &spare_ || opts_.host_bytes == 0);
    if (!started)
      return started.failure();
    *place = std::move(started).value();
  }
  compute_ = std::make_unique<compute_stream>(
    model_, memory_,
    [this](compute_done what) { inbox_.post(std::move(what)); });
  publish();
  return {};
}

// -- turns --------------------------------------------------------------------

stop_report engine_loop::run() {
  for (;;) {
    ++stats_.turns;
    hear();
    if (cache_broken_)
      restart_cache();
    act();
    publish();
    if (stop_at_
        && ((live_.empty() && in_flight_.empty()) || clock::now() >= *stop_at_))
      return end();
    auto until = stop_at_;
    if (patience_ends_)
      until = std::min(until.value_or(*patience_ends_), *patience_ends_);
    sleep(until);
  }
}

void engine_loop::hear() {
  const auto pass_on = [this](auto& what) { hear(what); };
  for (auto& message : inbox_.take())
    std::visit(pass_on, message);
  for (auto& event : cache_->calls().poll())
    std::visit(pass_on, event);
  for (auto& event : cache_->side().poll())
    std::visit(pass_on, event);
}

void engine_loop::act() {
  // Who was admitted makes room for questions, and answers to them come at
  // once from a cache that is off.
  ask();
  while (in_flight_.size() < steps_ahead && step())
    ask();
  if (!planner_.has_deferred() || !in_flight_.empty()) {
    patience_ends_.reset();
  } else if (!patience_ends_) {
    patience_ends_ = clock::now() + ask_again_after;
  } else if (clock::now() >= *patience_ends_) {
    patience_ends_.reset();
    step(true);
    ask();
  }
}

void engine_loop::sleep(std::optional<clock::time_point> deadline) {
  auto fds = std::array<pollfd, 3>{{
    {inbox_.event_fd(), POLLIN, 0},
    {cache_->calls().event_fd(), POLLIN, 0},
    {cache_->side().event_fd(), POLLIN, 0},
  }};
  auto milliseconds = -1;
  if (deadline) {
    // Rounded up, so as not to wake before.
    const auto left
      = std::chrono::ceil<std::chrono::milliseconds>(*deadline - clock::now());
    milliseconds = static_cast<int>(
      std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, 60'000));
  }
  // An interrupted sleep is a short one.
  poll(fds.data(), fds.size(), milliseconds);
}

void engine_loop::publish() {
  const auto& pool = tables_.pool();
  stats_.waiting = planner_.waiting();
  stats_.loading = planner_.loading();
  stats_.running = planner_.running();
  stats_.device_blocks = pool.size();
  stats_.free_blocks = pool.free_blocks();
  stats_.held_blocks = 0;
  for (const auto& [request, blocks] : held_)
    stats_.held_blocks += blocks.size();
  for (const auto& [life, cache] : retired_)
    stats_.held_blocks += cache.blocks().size();
  stats_.cache_alive = !cache_->off();
  board_.publish(stats_, answered_);
}

bool engine_loop::hear_until(const std::function<bool()>& holds,
                             clock::time_point deadline) {
  for (;;) {
    hear();
    if (holds())
      return true;
    if (cache_broken_ || clock::now() >= deadline)
      return false;
    sleep(deadline);
  }
}

// -- the inbox ----------------------------------------------------------------

void engine_loop::hear(submitted& what) {
  const auto seq = std::make_shared<sequence>(what.id, std::move(what.request),
                                              std::move(what.callbacks),
                                              opts_.tokens_per_block);
  live_.emplace(seq->id, seq);
  tell_of(seq);
  planner_.enqueue(seq);
  ++stats_.submitted;
}

void engine_loop::hear(const abort_request& what) {
  if (const auto found = live_.find(what.id); found != live_.end())
    end(sequence_ptr{found->second}, completion_end::aborted);
}

void engine_loop::hear(const stats_wanted&) {
  if (answers_missing_ == 0)
    ask_stats();
}

void engine_loop::hear(const stop_request& what) {
  stop_at_ = what.deadline;
}

void engine_loop::hear(const retired_cache_gone& what) {
  const auto found = retired_.find(what.life);
  if (found == retired_.end())
    return;
  tables_.release(found->second.blocks());
  retired_.erase(found);
}

void engine_loop::ask_stats() {
  question_ = board_.asked();
  answers_missing_ = 2;
  cache_->side().get_stats();
  cache_->calls().get_stats();
}

// -- the end ------------------------------------------------------------------

stop_report engine_loop::end() {
  auto res = stop_report{};
  res.aborted_requests = live_.size();
  res.drained = live_.empty();
  while (!live_.empty())
    end(sequence_ptr{live_.begin()->second}, completion_end::aborted);
  const auto deadline = std::max(*stop_at_, clock::now() + grace);
  part_from_cache(deadline);
  if (cache_broken_ && spare_) {
    // It cannot say any more what runs, but when nothing does.
    retire_cache(grace);
    cache_ = std::move(spare_);
    answers_missing_ = 0;
  }
  (void)hear_until([this] { return retired_.empty(); }, deadline);
  const auto question = board_.ask();
  if (answers_missing_ == 0)
    ask_stats();
  const auto answered = hear_until([&] { return answered_ >= question; },
                                   std::max(deadline, clock::now()) + grace);
  publish();
  res.last = stats_;
  // Late copies of a book that was lost are no jobs any more.
  const auto& cache = stats_.cache;
  if (answered && retired_.empty()
      && (cache.jobs_in_flight > 0 || cache.quarantined_slots == 0))
    res.jobs_in_flight = cache.jobs_in_flight;
  return res;
}

void engine_loop::part_from_cache(clock::time_point deadline) {
  const auto over = [this] { return in_flight_.empty(); };
  // One step plans the tails of who finished, the next one hands their stores
  // over.
  for (auto left = 2; left > 0 && hear_until(over, deadline); --left)
    step(true);
  if (!hear_until(over, deadline))
    return;
  const auto left = deadline - clock::now();
  shutdown_ = cache_->calls().shutdown(
    std::chrono::ceil<std::chrono::milliseconds>(left));
  (void)hear_until([this] { return !shutdown_; }, deadline + grace);
}

} // namespace serve
