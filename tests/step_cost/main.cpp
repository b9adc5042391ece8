// SPDX-License-Identifier: Apache-2.0

/// @file
/// `kvtide-step-cost`: what a step costs. Plays an engine whose requests
/// decode, store, finish and load, against the real actors on CAF's test
/// scheduler, so that every run does the same. Meant to be run under callgrind,
/// which counts instructions inside `kvtide_measured_run`: what the actors do,
/// without the engine. See compare.cmake.

#include "actors/cache_manager.hpp"
#include "actors/gpu_worker.hpp"
#include "actors/scheduler.hpp"
#include "core/device_check.hpp"
#include "core/layout.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/instant_device.hpp"
#include "tests/support/listen.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The name is what callgrind looks for.
extern "C" [[gnu::noinline]] void
kvtide_measured_run(kvtide::test::actor_world* world) {
  world->run();
}

namespace kvtide {
namespace {

constexpr auto block_tokens = token_count{16};
constexpr auto prompt_tokens = token_count{64};

struct parameters {
  std::size_t requests = 64;
  std::size_t steps = 32;
  std::uint32_t ranks = 2;
  bool checks = true;
};

// -- neighbours ---------------------------------------------------------------

struct part_state {
  static inline const char* name = "part";
};

/// What the engine has heard and not looked at.
struct engine_ear {
  std::vector<lookup_hit> hits;
  std::vector<request_id> loaded;
  std::vector<block_id> released;
  stats counters;
};

engine_actor::behavior_type
play_engine(engine_actor::stateful_pointer<part_state>, engine_ear* ear) {
  return test::listen<engine_actor>(
    [=](const lookup_answer& x) { ear->hits.push_back(x.hits.front()); },
    [=](const stats_answer& x) { ear->counters = x.values; },
    [=](const load_done& x) { ear->loaded.push_back(x.request); });
}

/// Compute of a step is enqueued as soon as it may be.
rank_side_actor::behavior_type
play_rank(rank_side_actor::stateful_pointer<part_state> self) {
  return test::listen<rank_side_actor>([=](const step_ready& x) {
    self->send(caf::actor_cast<gpu_worker_actor>(self->current_sender()),
               msg::end_step{x.step, {}});
  });
}

// -- the engine ---------------------------------------------------------------

/// Keeps `requests` requests running: whoever has decoded its share finishes,
/// and another one with one of a few prompts takes its place.
class engine {
public:
  explicit engine(const parameters& params) : params_(params) {
    auto opts = options{};
    opts.blocks_per_chunk = 1;
    opts.ranks = params.ranks;
    opts.host_bytes = 1;
    opts.order_checks = params.checks ? order_checks::count : order_checks::off;
    const auto shape
      = std::make_shared<const core::layout>(core::make_layout(opts).value());
    scheduler_ = world_.spawn(
      scheduler, scheduler_config{shape, opts, {}},
      world_.spawn(cache_manager, cache_manager_config{shape, opts}),
      world_.spawn(play_engine, &ear_));
    for (rank_id rank = 0; rank < params.ranks; ++rank)
      add_rank(rank, opts);
    for (block_id block = 1; block <= params.requests * 32; ++block)
      free_.push_back(block);
  }

  void run(std::size_t steps, bool measured) {
    measured_ = measured;
    for (std::size_t i = 0; i < steps; ++i)
      step();
    measured_ = false;
  }

  stats counters() {
    tell(msg::get_stats{++ticket_});
    return ear_.counters;
  }

private:
  struct running {
    token_count end = 0;
    token_count computed = 0;
    token_count known = prompt_tokens;
    std::vector<block_id> table;
    bool loading = false;
    bool scheduled = false;
  };

  template <class Message>
  void tell(Message message) {
    world_.send(scheduler_, std::move(message));
    if (measured_)
      kvtide_measured_run(&world_);
    else
      world_.run();
  }

  void add_rank(rank_id rank, const options& opts) {
    auto* check = params_.checks ? &checks_.emplace_back(device_log_) : nullptr;
    auto cfg = gpu_worker_config{};
    cfg.rank = rank;
    cfg.order_checks = opts.order_checks;
    const auto worker = world_.spawn(
      gpu_worker, cfg,
      world_.spawn(test::instant_device, std::uint64_t{1'024}, check),
      caf::actor_cast<scheduler_worker_port>(scheduler_),
      world_.spawn(play_rank));
    auto memory = kv_memory{};
    memory.rank = rank;
    world_.send(worker, msg::register_kv{std::move(memory)});
    world_.run();
  }

  void step() {
    for (auto id : std::exchange(ear_.loaded, {}))
      rows_.at(id).loading = false;
    auto call = step_call{};
    call.step = ++last_step_;
    for (auto id : over())
      call.finished.push_back(finish(id));
    while (rows_.size() < params_.requests)
      add();
    for (auto& [id, row] : rows_)
      if (!row.loading)
        call.rows.push_back(schedule(id, row));
    tell(msg::step{++ticket_, std::move(call)});
  }

  /// Whoever has decoded its share.
  [[nodiscard]] std::vector<request_id> over() const {
    auto out = std::vector<request_id>{};
    for (const auto& [id, row] : rows_)
      if (row.computed >= row.end)
        out.push_back(id);
    return out;
  }

  void add() {
    const auto id = ++last_request_;
    auto& row = rows_[id];
    row.end = prompt_tokens + static_cast<token_count>(32 + id % 64);
    tell(msg::add{++ticket_,
                  {id,
                   prompt_tokens,
                   prompt_tokens,
                   false,
                   false,
                   false,
                   no_cap,
                   0,
                   0,
                   {}}});
    extend(id, 0, prompt_tokens / block_tokens);
    tell(msg::lookup{++ticket_, {{id, 0, prompt_tokens}}});
    const auto hit = ear_.hits.back();
    ear_.hits.clear();
    if (hit.ask_again || hit.tokens == 0)
      return;
    grow(row.table, hit.tokens);
    row.computed = hit.tokens;
    row.loading = true;
    tell(msg::allocate{++ticket_,
                       {id,
                        hit.tokens,
                        {row.table},
                        {std::vector<std::uint8_t>(row.table.size(), 0)}}});
  }

  /// The first chunks of every eighth request are the same, all else differs.
  void extend(request_id id, token_count first, token_count end) {
    auto call = extend_keys{};
    call.request = id;
    call.first = static_cast<std::uint64_t>(first);
    for (auto chunk = first; chunk < end; ++chunk) {
      const auto shared = (chunk + 1) * block_tokens <= prompt_tokens;
      const auto text
        = std::to_string(shared ? id % 8 : id) + "/" + std::to_string(chunk);
      call.hashes.emplace_back(text.data(), text.size());
    }
    tell(msg::extend{++ticket_, std::move(call)});
  }

  step_row schedule(request_id id, running& row) {
    auto out = step_row{};
    out.request = id;
    out.kind = row.scheduled ? row_kind::running : row_kind::fresh;
    out.computed = row.computed;
    out.scheduled = std::max<token_count>(1, prompt_tokens - row.computed);
    row.known = std::max(row.known, row.computed + out.scheduled);
    out.known = row.known;
    const auto before = row.scheduled ? row.table.size() : 0;
    grow(row.table, row.computed + out.scheduled);
    if (row.table.size() > before)
      out.new_blocks
        = {{row.table.begin() + static_cast<std::ptrdiff_t>(before),
            row.table.end()}};
    row.scheduled = true;
    row.computed += out.scheduled;
    if (row.computed > prompt_tokens && row.computed % block_tokens == 0)
      extend(id, row.computed / block_tokens - 1, row.computed / block_tokens);
    return out;
  }

  finish_call finish(request_id id) {
    const auto& row = rows_.at(id);
    const auto out
      = finish_call{id, finish_reason::length, row.known, row.computed};
    tell(msg::finish{++ticket_, out});
    free_.insert(free_.end(), row.table.begin(), row.table.end());
    rows_.erase(id);
    return out;
  }

  void grow(std::vector<block_id>& table, token_count tokens) {
    while (static_cast<token_count>(table.size()) * block_tokens < tokens) {
      table.push_back(free_.back()); // Reused at once, so that stores flush.
      free_.pop_back();
    }
  }

  parameters params_;
  bool measured_ = false;
  engine_ear ear_;
  core::order_log device_log_;
  std::deque<core::device_check> checks_;
  std::map<request_id, running> rows_;
  std::vector<block_id> free_;
  request_id last_request_ = 0;
  ticket_id ticket_ = 0;
  step_id last_step_ = 0;
  scheduler_actor scheduler_;
  test::actor_world world_;
};

} // namespace
} // namespace kvtide

int main(int argc, char** argv) {
  auto params = kvtide::parameters{};
  CLI::App app{"Runs a fixed scenario; callgrind counts what it costs"};
  app.add_option("--requests", params.requests)->check(CLI::Range(1, 4'096));
  app.add_option("--steps", params.steps)->check(CLI::Range(1, 100'000));
  app.add_option("--ranks", params.ranks)->check(CLI::Range(1, 64));
  app.add_option("--checks", params.checks);
  CLI11_PARSE(app, argc, argv);
  kvtide::engine engine{params};
  engine.run(128, false); // Requests end at different steps by then.
  const auto before = engine.counters();
  engine.run(params.steps, true);
  const auto after = engine.counters();
  const auto count = [&](std::uint64_t kvtide::stats::*what) {
    return static_cast<unsigned long long>(after.*what - before.*what);
  };
  std::printf("%zu requests, %u ranks, %llu steps: %llu stores, %llu loads, "
              "%llu flushed, order errors %llu\n",
              params.requests, params.ranks, count(&kvtide::stats::steps),
              count(&kvtide::stats::store_jobs),
              count(&kvtide::stats::load_jobs),
              count(&kvtide::stats::flushed_jobs),
              static_cast<unsigned long long>(after.order_errors));
  return after.order_errors == 0 ? 0 : 1;
}
