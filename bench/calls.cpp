// SPDX-License-Identifier: Apache-2.0

// What do the engine's other calls cost, and how much memory does a request or
// a chunk take?
//
//   bench-calls --benchmark_filter=lookup
//
// Times are microseconds, p50 and p99:
//   lookup       of one prompt of which every chunk is found (hit) or none
//   (miss),
//                until the answer is there; with threads:0 all actors run on
//                the caller's thread; `runtime` is a whole kvtide::runtime, as
//                the engine's thread sees it, from the call until poll() has it
//   first_store  a step that computes a prompt of 512 chunks, and everything
//   until
//                these are published
//   add_finish   a request with 512 hashes comes, is looked up and ends
// `memory` counts bytes of live allocations.

#include "kvtide/runtime.hpp"

#include "bench/actors_under_test.hpp"
#include "bench/allocations.hpp"
#include "bench/load.hpp"
#include "bench/percentiles.hpp"
#include "bench/run.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kvtide::bench {
namespace {

using steady = std::chrono::steady_clock;

constexpr std::uint64_t known_prompt = 1;

double micros_since(steady::time_point start) {
  return std::chrono::duration<double, std::micro>{steady::now() - start}
    .count();
}

add_request add_of(request_id id, token_count tokens) {
  auto out = add_request{};
  out.request = id;
  out.prompt_tokens = out.known_tokens = tokens;
  return out;
}

extend_keys keys_of(request_id id, std::uint64_t prompt, token_count tokens) {
  auto out = extend_keys{};
  out.request = id;
  out.hashes = hashes_of(prompt, 0, tokens / block_tokens);
  return out;
}

/// The whole prompt is computed into blocks from `first` on.
step_row prefill_of(request_id id, token_count tokens, block_id first) {
  auto out = step_row{};
  out.request = id;
  out.kind = row_kind::fresh;
  out.scheduled = out.known = tokens;
  out.new_blocks.resize(1);
  for (token_count at = 0; at < tokens; at += block_tokens)
    out.new_blocks[0].push_back(first++);
  return out;
}

finish_call abort_of(request_id id) {
  auto out = finish_call{};
  out.request = id;
  out.reason = finish_reason::abort;
  return out;
}

/// The actors, and the engine's numbers.
class caller {
public:
  explicit caller(std::size_t threads) : uut_(load_config{}, threads) {
    // nop
  }

  /// @param rows of the step
  double step(std::vector<step_row> rows, std::vector<finish_call> ends = {}) {
    auto call = step_call{};
    call.step = ++last_step_;
    call.rows = std::move(rows);
    call.finished = std::move(ends);
    return uut_.step(std::move(call)).all;
  }

  /// A new request with the hashes of a prompt.
  request_id add(std::uint64_t prompt, token_count tokens) {
    const auto id = ++last_request_;
    uut_.send(msg::add{0, add_of(id, tokens + 1)});
    uut_.send(msg::extend{0, keys_of(id, prompt, tokens)});
    uut_.settle();
    return id;
  }

  /// Computes a prompt and publishes its chunks.
  /// @returns microseconds of both steps
  double store(request_id id, token_count tokens) {
    auto rows = std::vector<step_row>{};
    rows.push_back(prefill_of(id, tokens, next_block_));
    next_block_ += static_cast<block_id>(tokens / block_tokens);
    const auto planned = step(std::move(rows));
    return planned + step({}); // The copies begin with it (S3).
  }

  double lookup(request_id id, token_count tokens) {
    const auto start = steady::now();
    uut_.send(msg::lookup{0, {{id, 0, tokens + 1}}});
    uut_.settle();
    return micros_since(start);
  }

  void end(request_id id) {
    uut_.send(msg::finish{0, abort_of(id)});
    step({}, {abort_of(id)});
  }

private:
  actors_under_test uut_;
  request_id last_request_ = 0;
  step_id last_step_ = 0;
  block_id next_block_ = 1;
};

/// Lookups of one prompt after the other, by `uut`, a `caller` or a `served`.
template <class Subject>
void lookup(benchmark::State& state, Subject& uut, token_count tokens,
            bool hit) {
  uut.store(uut.add(known_prompt, tokens), tokens);
  auto other = known_prompt;
  auto times = std::vector<double>{};
  for (auto _ : state) {
    const auto id = uut.add(hit ? known_prompt : ++other, tokens);
    times.push_back(uut.lookup(id, tokens));
    state.SetIterationTime(times.back() * 1e-6);
    uut.end(id);
  }
  report(state, "lookup", times);
}

void first_store(benchmark::State& state, token_count tokens) {
  auto uut = caller{0};
  auto prompt = known_prompt;
  auto times = std::vector<double>{};
  for (auto _ : state) {
    const auto id = uut.add(++prompt, tokens);
    times.push_back(uut.store(id, tokens));
    state.SetIterationTime(times.back() * 1e-6);
    uut.end(id);
  }
  report(state, "store", times);
}

void add_finish(benchmark::State& state, token_count tokens) {
  auto uut = caller{0};
  auto prompt = known_prompt;
  for (auto _ : state) {
    const auto start = steady::now();
    const auto id = uut.add(++prompt, tokens);
    (void)uut.lookup(id, tokens);
    uut.end(id);
    state.SetIterationTime(micros_since(start) * 1e-6);
  }
  state.counters["requests_per_second"] = benchmark::Counter{
    static_cast<double>(state.iterations()), benchmark::Counter::kIsRate};
}

/// What stays allocated for so many requests that decode, and for a pool that
/// holds the chunks of half of them.
void memory(benchmark::State& state, token_count tokens) {
  constexpr auto requests = 64;
  const auto chunks = static_cast<double>(tokens / block_tokens);
  for (auto _ : state) {
    auto uut = caller{0};
    auto ids = std::vector<request_id>{};
    const auto add = [&](std::uint64_t prompt) {
      ids.push_back(uut.add(prompt, tokens));
      return ids.back();
    };
    // Rooms that double have their last size; what is stored is there already.
    for (std::uint64_t prompt = 1; prompt <= requests; ++prompt)
      uut.store(add(prompt), tokens);
    for (auto id : std::exchange(ids, {}))
      uut.end(id);
    const auto before = allocations_so_far().live_bytes;
    for (std::uint64_t prompt = 1; prompt <= requests; ++prompt)
      uut.store(add(prompt), tokens);
    state.counters["bytes_per_request"]
      = static_cast<double>(allocations_so_far().live_bytes - before)
      / requests;
    for (auto id : std::exchange(ids, {}))
      uut.end(id);
    const auto empty = allocations_so_far().live_bytes;
    for (std::uint64_t prompt = requests + 1; prompt <= 2 * requests;
         ++prompt) {
      const auto id = add(prompt);
      uut.store(id, tokens);
      uut.end(id);
    }
    state.counters["bytes_per_chunk"]
      = static_cast<double>(allocations_so_far().live_bytes - empty)
      / (requests * chunks);
  }
}

// -- a whole runtime ----------------------------------------------------------

constexpr std::size_t block_bytes = 64;

/// One rank with memory for one prompt; compute takes no time.
class served {
public:
  explicit served(token_count tokens)
    : memory_((static_cast<std::size_t>(tokens / block_tokens) + 1)
              * block_bytes),
      runtime_(runtime::start(options_for(tokens)).value()) {
    auto kv = kv_memory{};
    kv.tensors.push_back(
      {memory_.data(), memory_.size(), memory_kind::host,
       static_cast<std::uint32_t>(memory_.size() / block_bytes), block_bytes,
       block_bytes});
    kv.references.push_back({0, 0, 0, 0, block_bytes});
    side().register_kv(std::move(kv));
    await<kv_registered>(side());
  }

  request_id add(std::uint64_t prompt, token_count tokens) {
    const auto id = ++last_request_;
    runtime_.add(add_of(id, tokens + 1));
    runtime_.extend(keys_of(id, prompt, tokens));
    return id;
  }

  void store(request_id id, token_count tokens) {
    auto rows = std::vector<step_row>{};
    rows.push_back(prefill_of(id, tokens, 1));
    step(std::move(rows));
    do {
      step({});
      runtime_.get_stats();
    } while (await<stats_answer>(runtime_).values.jobs_in_flight > 0);
  }

  double lookup(request_id id, token_count tokens) {
    const auto start = steady::now();
    runtime_.lookup({{id, 0, tokens + 1}});
    (void)await<lookup_answer>(runtime_);
    return micros_since(start);
  }

  void end(request_id id) {
    runtime_.finish(abort_of(id));
    step({}, {abort_of(id)});
  }

private:
  static options options_for(token_count tokens) {
    auto out = options{};
    out.blocks_per_chunk = 1;
    out.host_bytes
      = static_cast<std::uint64_t>(tokens / block_tokens) * block_bytes;
    return out;
  }

  rank& side() {
    return runtime_.local_rank(0);
  }

  void step(std::vector<step_row> rows, std::vector<finish_call> ends = {}) {
    auto call = step_call{};
    call.step = ++last_step_;
    call.rows = std::move(rows);
    call.finished = std::move(ends);
    runtime_.step(std::move(call));
    side().begin_step(last_step_);
    await<step_ready>(side());
    side().end_step(last_step_, {});
    await<step_plan>(runtime_);
  }

  /// Waits for an event of one kind, and drops those before it.
  template <class Event, class Side>
  Event await(Side& from) {
    for (;;) {
      while (!from.wait(std::chrono::milliseconds{1'000}))
        ; // nop
      for (auto& event : from.poll())
        if (auto* found = std::get_if<Event>(&event); found != nullptr)
          return std::move(*found);
    }
  }

  std::vector<char> memory_;
  runtime runtime_;
  request_id last_request_ = 0;
  step_id last_step_ = 0;
};

void measure_all() {
  const auto add
    = [](const std::string& name, std::int64_t iterations, auto fun) {
        benchmark::RegisterBenchmark(name.c_str(), fun)
          ->UseManualTime()
          ->Iterations(iterations)
          ->Unit(benchmark::kMicrosecond);
      };
  for (token_count tokens : {8'192, 131'072})
    for (auto hit : {true, false}) {
      const auto name = std::string{hit ? "lookup/hit" : "lookup/miss"}
                      + "/tokens:" + std::to_string(tokens);
      for (std::size_t threads : {0, 1})
        add(name + "/threads:" + std::to_string(threads), 500,
            [=](benchmark::State& state) {
              auto uut = caller{threads};
              lookup(state, uut, tokens, hit);
            });
      add(name + "/runtime", 500, [=](benchmark::State& state) {
        auto uut = served{tokens};
        lookup(state, uut, tokens, hit);
      });
    }
  add("first_store/tokens:8192", 500,
      [](benchmark::State& state) { first_store(state, 8'192); });
  add("add_finish/tokens:8192", 2'000,
      [](benchmark::State& state) { add_finish(state, 8'192); });
  add("memory/tokens:8192", 1,
      [](benchmark::State& state) { memory(state, 8'192); });
}

} // namespace
} // namespace kvtide::bench

int main(int argc, char** argv) {
  kvtide::bench::measure_all();
  return kvtide::bench::run(argc, argv);
}
