// SPDX-License-Identifier: Apache-2.0

// What does a step cost the engine's thread with offloading off?
//
//   bench-off
//
// Times are microseconds of single calls, p50 and p99 of all steps:
//   step     `runtime::step` and the `poll` that returns its plan
//   rows     to free the same rows without a runtime, which `step` does too:
//            it takes them over
// What the runtime adds is the difference; an engine may also leave rows out.

#include "kvtide/runtime.hpp"

#include "bench/percentiles.hpp"
#include "bench/run.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::bench {
namespace {

constexpr auto warm_up_steps = 100;
constexpr auto steps = 10'000;
constexpr std::size_t block_tokens = 16;

/// Requests that decode one token each: one in 16 gets a new block.
std::vector<step_row> make_rows(std::size_t requests, step_id step) {
  auto out = std::vector<step_row>{};
  out.reserve(requests);
  for (std::size_t i = 0; i < requests; ++i) {
    auto row = step_row{};
    row.request = i + 1;
    row.computed = static_cast<token_count>(step);
    row.scheduled = 1;
    row.known = row.computed + 1;
    if ((i + step) % block_tokens == 0)
      row.new_blocks.push_back({static_cast<block_id>(i + 1)});
    out.push_back(std::move(row));
  }
  return out;
}

template <class Function>
double microseconds_of(Function what) {
  const auto start = std::chrono::steady_clock::now();
  what();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::micro>{end - start}.count();
}

void step_and_poll(benchmark::State& state, std::size_t requests) {
  auto opts = options{};
  opts.host_bytes = 0;
  auto uut = runtime::start(opts).value();
  auto last_step = step_id{0};
  const auto step = [&] {
    const auto id = ++last_step;
    auto call = step_call{id, make_rows(requests, id), {}, {}};
    return microseconds_of([&] {
      uut.step(std::move(call));
      benchmark::DoNotOptimize(uut.poll());
    });
  };
  const auto free_rows = [&] {
    auto rows = make_rows(requests, last_step);
    return microseconds_of([&] { const auto gone = std::move(rows); });
  };
  for (auto i = 0; i < warm_up_steps; ++i) {
    (void)step();
    (void)free_rows();
  }
  auto all = std::vector<double>{};
  auto rows = std::vector<double>{};
  for (auto _ : state) {
    all.push_back(step());
    rows.push_back(free_rows());
    state.SetIterationTime(all.back() * 1e-6);
  }
  report(state, "step", all);
  report(state, "rows", rows);
}

void measure_all() {
  for (std::size_t requests : {0u, 1u, 256u, 1'024u})
    benchmark::RegisterBenchmark(
      ("rows:" + std::to_string(requests)).c_str(),
      [=](benchmark::State& state) { step_and_poll(state, requests); })
      ->UseManualTime()
      ->Iterations(steps)
      ->Unit(benchmark::kMicrosecond);
}

} // namespace
} // namespace kvtide::bench

int main(int argc, char** argv) {
  kvtide::bench::measure_all();
  return kvtide::bench::run(argc, argv);
}
