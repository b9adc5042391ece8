// SPDX-License-Identifier: Apache-2.0

// What a step costs that decodes one token of every running request, in figures
// that are the same on every machine and at any load:
//
//   bench-counts --requests 1024 --context 8192
//
// prints allocations, their bytes, and messages by kind, each per step. Under
// callgrind, which counts instructions,
//
//   valgrind --tool=callgrind --toggle-collect=kvtide_counted_step bench-counts
//
// See gate.py for the scenarios that are held to bounds.

#include "bench/actors_under_test.hpp"
#include "bench/allocations.hpp"
#include "bench/load.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <utility>

namespace kvtide::bench {
namespace {

struct parameters {
  load_config load;
  std::size_t steps = 64;
  bool messages = true;
};

/// Before what is counted: rooms that grow once have grown.
constexpr std::size_t warm_up_steps = 32;

} // namespace
} // namespace kvtide::bench

/// The name is what callgrind looks for.
extern "C" [[gnu::noinline]] void
kvtide_counted_step(kvtide::bench::actors_under_test& uut,
                    kvtide::step_call& next) {
  uut.step(std::move(next));
}

namespace kvtide::bench {
namespace {

/// A load whose requests have all computed their prompts.
void arrive(engine_load& load, actors_under_test& uut, std::size_t requests) {
  for (std::size_t i = 0; i < requests; ++i) {
    auto next = load.arrive();
    uut.send(msg::add{0, std::move(next.add)});
    uut.send(msg::extend{0, std::move(next.keys)});
    uut.step(std::move(next.prefill));
  }
}

void run(const parameters& params) {
  auto load = engine_load{params.load};
  auto uut = actors_under_test{params.load, 0};
  arrive(load, uut, params.load.requests);
  const auto per_step = [&](std::size_t sum) {
    return static_cast<double>(sum) / static_cast<double>(params.steps);
  };
  auto count = std::size_t{0};
  auto bytes = std::size_t{0};
  auto crossings = std::size_t{0};
  auto messages = std::map<std::string, std::size_t>{};
  const auto decode = [&] {
    auto next = load.decode();
    for (auto& keys : next.keys)
      uut.send(msg::extend{0, std::move(keys)});
    uut.settle();
    messages.erase("extend");
    crossings += load.crossings();
    const auto before = allocations_so_far();
    kvtide_counted_step(uut, next.step);
    const auto after = allocations_so_far();
    count += after.count - before.count;
    bytes += after.bytes - before.bytes;
  };
  for (std::size_t i = 0; i < warm_up_steps; ++i)
    decode();
  count = bytes = crossings = 0;
  if (params.messages)
    uut.count_messages(messages);
  for (std::size_t i = 0; i < params.steps; ++i)
    decode();
  std::printf("crossings: %.2f\n", per_step(crossings));
  if (!params.messages) {
    std::printf("allocations: %.2f\nbytes: %.0f\n", per_step(count),
                per_step(bytes));
    return;
  }
  auto all = std::size_t{0};
  for (const auto& [name, sum] : messages) {
    std::printf("messages %s: %.2f\n", name.c_str(), per_step(sum));
    all += sum;
  }
  std::printf("messages: %.2f\n", per_step(all));
}

} // namespace
} // namespace kvtide::bench

int main(int argc, char** argv) {
  auto params = kvtide::bench::parameters{};
  auto app
    = CLI::App{"Counts what a step costs that decodes one token of every "
               "running request."};
  app.add_option("--requests", params.load.requests, "running requests")
    ->check(CLI::Range(1, 100'000));
  app.add_option("--context", params.load.context, "tokens of each")
    ->check(CLI::Range(16, 1'000'000));
  app.add_option("--blocks-per-chunk", params.load.blocks_per_chunk)
    ->check(CLI::Range(1, 64));
  app.add_flag("--sliding", params.load.sliding,
               "add a group with a sliding window");
  app.add_option("--ranks", params.load.ranks)->check(CLI::Range(1, 64));
  app.add_option("--steps", params.steps, "steps that are counted")
    ->check(CLI::Range(1, 100'000));
  app.add_flag("--messages,!--allocations", params.messages,
               "count messages by kind (the default), or allocations");
  CLI11_PARSE(app, argc, argv);
  kvtide::bench::run(params);
  return 0;
}
