// SPDX-License-Identifier: Apache-2.0

// What does a step cost that decodes one token of every running request?
//
//   bench-step --benchmark_filter=requests:1024
//
// Times are microseconds, p50 and p99 of all steps:
//   begin    from the call until `begin_step` has left for rank 0
//   all      until every message of the step is handled
//   floor    the same decisions by direct calls into core/, no messages
// With threads:0 all actors run on the caller's thread, one message after the
// other; else on so many threads of their own, with all wake-ups.

#include "bench/actors_under_test.hpp"
#include "bench/direct_calls.hpp"
#include "bench/load.hpp"
#include "bench/percentiles.hpp"
#include "bench/run.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::bench {
namespace {

constexpr auto warm_up_steps = 32;
constexpr auto steps = 1'000;

void through_actors(benchmark::State& state, const load_config& config,
                    std::size_t threads) {
  auto load = engine_load{config};
  auto uut = actors_under_test{config, threads};
  for (std::size_t i = 0; i < config.requests; ++i) {
    auto next = load.arrive();
    uut.send(msg::add{0, std::move(next.add)});
    uut.send(msg::extend{0, std::move(next.keys)});
    uut.step(std::move(next.prefill));
  }
  auto begin = std::vector<double>{};
  auto all = std::vector<double>{};
  auto crossings = std::size_t{0};
  const auto decode = [&] {
    auto next = load.decode();
    for (const auto& call : next.ends)
      uut.send(msg::finish{0, call});
    for (auto& call : next.arrivals)
      uut.send(msg::add{0, std::move(call)});
    for (auto& keys : next.keys)
      uut.send(msg::extend{0, std::move(keys)});
    uut.settle();
    crossings += load.crossings();
    return uut.step(std::move(next.step));
  };
  for (auto i = 0; i < warm_up_steps; ++i)
    (void)decode();
  crossings = 0;
  for (auto _ : state) {
    const auto took = decode();
    begin.push_back(took.begin);
    all.push_back(took.all);
    state.SetIterationTime(took.all * 1e-6);
  }
  report(state, "begin", begin);
  report(state, "all", all);
  state.counters["crossings"]
    = static_cast<double>(crossings) / static_cast<double>(all.size());
}

void directly(benchmark::State& state, const load_config& config) {
  auto load = engine_load{config};
  auto uut = direct_calls{config};
  for (std::size_t i = 0; i < config.requests; ++i) {
    const auto next = load.arrive();
    uut.add(next.add);
    uut.extend(next.keys);
    uut.step(next.prefill);
  }
  auto all = std::vector<double>{};
  const auto decode = [&] {
    const auto next = load.decode();
    for (const auto& call : next.arrivals)
      uut.add(call);
    for (const auto& keys : next.keys)
      uut.extend(keys);
    const auto start = std::chrono::steady_clock::now();
    uut.step(next.step);
    const auto end = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::micro>{end - start}.count();
  };
  for (auto i = 0; i < warm_up_steps; ++i)
    (void)decode();
  for (auto _ : state) {
    all.push_back(decode());
    state.SetIterationTime(all.back() * 1e-6);
  }
  report(state, "floor", all);
}

std::string name_of(const load_config& config) {
  auto out = "requests:" + std::to_string(config.requests)
           + "/context:" + std::to_string(config.context)
           + "/blocks_per_chunk:" + std::to_string(config.blocks_per_chunk)
           + "/ranks:" + std::to_string(config.ranks);
  if (config.sliding)
    out += "/sliding";
  if (config.churn > 0)
    out += "/churn:" + std::to_string(config.churn);
  if (config.rules == rule_set::reference)
    out += "/reference";
  return out;
}

void measure(const load_config& config) {
  const auto add = [&](const std::string& how, auto fun) {
    benchmark::RegisterBenchmark((name_of(config) + "/" + how).c_str(), fun)
      ->UseManualTime()
      ->Iterations(steps)
      ->Unit(benchmark::kMicrosecond);
  };
  for (std::size_t threads : {0u, 1u, 2u})
    add("threads:" + std::to_string(threads), [=](benchmark::State& state) {
      through_actors(state, config, threads);
    });
  add("direct", [=](benchmark::State& state) { directly(state, config); });
}

/// One thing differs from the middle of the field at a time.
void measure_all() {
  for (std::size_t requests : {16u, 64u, 256u, 1'024u, 4'096u, 10'000u})
    for (std::uint32_t blocks : {1u, 8u})
      measure({.requests = requests, .blocks_per_chunk = blocks});
  for (token_count context : {1'024, 131'072})
    measure({.context = context});
  measure({.sliding = true});
  measure({.requests = 256, .sliding = true});
  measure({.ranks = 8});
  measure({.churn = 4});
  measure({.requests = 1'000});
  measure({.rules = rule_set::reference});
}

} // namespace
} // namespace kvtide::bench

int main(int argc, char** argv) {
  kvtide::bench::measure_all();
  return kvtide::bench::run(argc, argv);
}
