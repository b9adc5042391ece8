// SPDX-License-Identifier: Apache-2.0

// What do the directory's decisions cost, without messages?
//
//   bench-directory --benchmark_repetitions=9
//
// Arguments: replicas, and chunks known of each. A prompt has 131,072 tokens in
// 1,024 chunks. "Held" finds all of it at every replica, "Halves" at each a
// part that differs, "Unknown" nothing.

#include "core/replica_directory.hpp"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace kvtide;
using core::replica_directory;

constexpr std::size_t prompt_chunks = 1'024;
constexpr std::size_t batch_keys = 2'048;

/// Digests are hashes: these are spread as well as those.
std::uint64_t digest(std::uint64_t replica, std::uint64_t chunk) {
  auto x = (replica << 40 | chunk) + 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Chunks of its own for each replica, beside those of the prompt.
class full_directory {
public:
  full_directory(std::size_t replicas, std::size_t chunks) {
    for (std::size_t id = 0; id < replicas; ++id) {
      auto seat = replica_directory::seat_id{};
      table.join(std::to_string(id), 1, seat);
      auto stored = std::vector<std::uint64_t>{};
      for (std::uint64_t at = 0; at < chunks; ++at)
        stored.push_back(digest(id + 1, at));
      table.apply(seat, 1, {1, true, false, {}, stored});
    }
    for (std::uint64_t at = 0; at < prompt_chunks; ++at)
      prompt.digests.push_back(digest(0, at));
    prompt.chunk_tokens = 128;
  }

  /// Replica `id` gets the leading `chunks` of the prompt.
  void hold(replica_directory::seat_id id, std::size_t chunks) {
    const auto all = std::span{prompt.digests};
    table.apply(id, 1, {2, false, false, {}, all.first(chunks)});
  }

  replica_directory table{{std::size_t{64} << 20}};
  core::chunk_run prompt;
};

void ask(benchmark::State& state, full_directory& world) {
  auto tokens = token_count{0};
  for (auto _ : state) {
    const auto all = world.table.holdings({&world.prompt, 1});
    tokens = world.table.choose(all)->tokens;
  }
  state.counters["tokens"] = static_cast<double>(tokens);
  state.counters["bytes_per_key"] = static_cast<double>(world.table.bytes())
                                  / static_cast<double>(world.table.keys());
}

full_directory world_of(const benchmark::State& state) {
  return {static_cast<std::size_t>(state.range(0)),
          static_cast<std::size_t>(state.range(1))};
}

void ask_held(benchmark::State& state) {
  auto world = world_of(state);
  for (replica_directory::seat_id id = 0; id < state.range(0); ++id)
    world.hold(id, prompt_chunks);
  ask(state, world);
}

void ask_halves(benchmark::State& state) {
  auto world = world_of(state);
  for (replica_directory::seat_id id = 0; id < state.range(0); ++id)
    world.hold(id, prompt_chunks * (id + 1) / (id + 2));
  ask(state, world);
}

void ask_unknown(benchmark::State& state) {
  auto world = world_of(state);
  ask(state, world);
}

/// One batch of 2,048 keys that are new, and 2,048 that go.
void publish(benchmark::State& state) {
  auto world = world_of(state);
  auto stored = std::vector<std::uint64_t>{};
  for (std::uint64_t at = 0; at < batch_keys; ++at)
    stored.push_back(digest(99, at));
  auto sequence = std::uint64_t{1};
  for (auto _ : state) {
    world.table.apply(0, 1, {++sequence, false, false, {}, stored});
    world.table.apply(0, 1, {++sequence, false, false, stored, {}});
  }
  state.SetItemsProcessed(
    static_cast<std::int64_t>(state.iterations() * 2 * batch_keys));
}

/// One replica of all goes.
void leave(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    auto world = world_of(state);
    state.ResumeTiming();
    world.table.leave(0);
    state.PauseTiming();
    world = full_directory{0, 0};
    state.ResumeTiming();
  }
}

void sizes(benchmark::internal::Benchmark* x) {
  x->Args({4, 32'768})->Args({16, 32'768})->Args({64, 32'768});
}

BENCHMARK(ask_held)->Apply(sizes)->Name("Held");
BENCHMARK(ask_halves)->Apply(sizes)->Name("Halves");
BENCHMARK(ask_unknown)->Apply(sizes)->Name("Unknown");
BENCHMARK(publish)->Args({4, 32'768})->Args({64, 32'768})->Name("Publish");
BENCHMARK(leave)
  ->Args({4, 262'144})
  ->Unit(benchmark::kMillisecond)
  ->Iterations(5)
  ->Name("Leave");

} // namespace
