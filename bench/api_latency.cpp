// SPDX-License-Identifier: Apache-2.0

// How long do the calls that an engine in service makes keep its thread?
//
//   bench-api --steps 5000 --json api.json
//   bench-api --check        ends with 1 if a call takes over 50 us at p99
//
// The runtime is busy: 256 requests decode, four end and four come in each
// step, find their prompts or compute them, are loaded and stored; the calls of
// a step are made while the actors work at the step before. Times are wall
// time, and the table says in how many calls the thread lost its core: because
// it waited, or because somebody else got the core.

#include "bench/busy_engine.hpp"
#include "bench/call_times.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kvtide::bench {
namespace {

/// What no call may take at p99.
constexpr double most_micros = 50;

/// What follows a poll: no call, so no promise either.
constexpr const char* freed = "free what poll gave";

/// In the order of the table.
constexpr const char* names[] = {
  "add",
  "extend, one hash",
  "extend, whole prompt",
  "lookup",
  "decline",
  "allocate",
  "truncate",
  "outputs",
  "step",
  "finish",
  "get_stats",
  "explain",
  "take_events",
  "reset",
  "sleep",
  "wake",
  "shutdown",
  "poll",
  "rank: begin_step",
  "rank: make_event",
  "rank: end_step",
  "rank: complete_event",
  "rank: get_stats",
  "rank: poll",
  freed,
};

struct parameters {
  busy_config engine;
  std::uint64_t warm_up = 256;
  std::uint64_t steps = 10'000;
  std::string json;
  bool check = false;
};

/// Microseconds of one kind of call.
struct summary {
  double p50 = 0;
  double p99 = 0;
  double p999 = 0;
  double most = 0;
};

summary summary_of(std::vector<double>& micros) {
  if (micros.empty())
    return {};
  return {percentile(micros, 0.5), percentile(micros, 0.99),
          percentile(micros, 0.999), percentile(micros, 1)};
}

std::string now_utc() {
  const auto now = std::time(nullptr);
  auto parts = std::tm{};
  char text[32] = "";
  if (::gmtime_r(&now, &parts) != nullptr)
    std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

nlohmann::ordered_json json_of(const summary& x) {
  return {{"p50", x.p50}, {"p99", x.p99}, {"p99.9", x.p999}, {"max", x.most}};
}

void print_row(const call_times& call, const summary& all,
               const summary& undisturbed) {
  std::printf("| %s | %zu | %.1f | %.1f | %.1f | %.0f | %.1f | %zu | %zu |\n",
              call.name.c_str(), call.micros.size(), all.p50, all.p99, all.p999,
              all.most, undisturbed.p99, call.waited, call.preempted);
}

/// @returns whether each call keeps the promise
bool report(const parameters& params, call_clock& clock, const stats& counters,
            double seconds) {
  auto held = true;
  auto rows = nlohmann::ordered_json::array();
  std::printf("%s, %u cores, %llu steps in %.1f s (%llu stored and %llu loaded "
              "chunks)\n\n",
              now_utc().c_str(), std::thread::hardware_concurrency(),
              static_cast<unsigned long long>(params.steps), seconds,
              static_cast<unsigned long long>(counters.stored_chunks),
              static_cast<unsigned long long>(counters.loaded_chunks));
  std::printf("| call, us | calls | p50 | p99 | p99.9 | max | p99, core kept "
              "| waited | preempted |\n");
  std::printf("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: "
              "|\n");
  for (const auto* name : names) {
    auto& call = clock.times_of(name);
    const auto all = summary_of(call.micros);
    const auto undisturbed = summary_of(call.undisturbed);
    held = held && (name == freed || all.p99 <= most_micros);
    print_row(call, all, undisturbed);
    rows.push_back({{"call", call.name},
                    {"calls", call.micros.size()},
                    {"micros", json_of(all)},
                    {"micros_core_kept", json_of(undisturbed)},
                    {"waited", call.waited},
                    {"preempted", call.preempted}});
  }
  if (!params.json.empty())
    std::ofstream{params.json}
      << nlohmann::ordered_json{{"date", now_utc()},
                                {"cores", std::thread::hardware_concurrency()},
                                {"requests", params.engine.requests},
                                {"prompt", params.engine.prompt},
                                {"churn", params.engine.churn},
                                {"reset_every", params.engine.reset_every},
                                {"nap_every", params.engine.nap_every},
                                {"actor_threads", params.engine.actor_threads},
                                {"steps", params.steps},
                                {"seconds", seconds},
                                {"calls", std::move(rows)}}
           .dump(2)
      << '\n';
  return held;
}

/// @returns what is wrong with the run; empty for nothing
std::string fault_of(call_clock& clock, const stats& counters) {
  if (counters.order_errors > 0 || counters.failed_jobs > 0
      || counters.tracked_requests > 0)
    return "the runtime was used wrongly, or failed";
  for (const auto* name : names)
    if (clock.times_of(name).micros.empty())
      return std::string{name} + " was never called; take more steps";
  return {};
}

int run(const parameters& params) {
  auto clock = call_clock{};
  auto engine = busy_engine{params.engine, clock};
  for (std::uint64_t i = 0; i < params.warm_up; ++i)
    engine.turn();
  clock.begin();
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < params.steps; ++i)
    engine.turn();
  const auto seconds
    = std::chrono::duration<double>{std::chrono::steady_clock::now() - start};
  clock.end();
  const auto counters = engine.finish();
  if (const auto fault = fault_of(clock, counters); !fault.empty()) {
    std::fprintf(stderr, "bench-api: %s\n", fault.c_str());
    return 1;
  }
  const auto held = report(params, clock, counters, seconds.count());
  return params.check && !held ? 1 : 0;
}

} // namespace
} // namespace kvtide::bench

int main(int argc, char** argv) {
  auto params = kvtide::bench::parameters{};
  auto app = CLI::App{"Measures how long each call keeps the engine's thread "
                      "while the runtime is busy."};
  auto& engine = params.engine;
  app.add_option("--steps", params.steps, "steps that count")
    ->check(CLI::Range(1, 10'000'000));
  app.add_option("--warm-up", params.warm_up, "steps before them")
    ->check(CLI::Range(1, 1'000'000));
  app.add_option("--requests", engine.requests, "running requests")
    ->check(CLI::Range(1, 100'000));
  app.add_option("--churn", engine.churn, "requests that end in each step")
    ->check(CLI::Range(0, 1'000));
  app.add_option("--reset-every", engine.reset_every, "steps between resets")
    ->check(CLI::Range(2, 1'000'000));
  app
    .add_option("--nap-every", engine.nap_every,
                "steps between calls of sleep and wake; 0 for none")
    ->check(CLI::Range(0, 1'000'000));
  app.add_option("--actor-threads", engine.actor_threads)
    ->check(CLI::Range(1, 64));
  app.add_option("--json", params.json, "file to write");
  app.add_flag("--check", params.check,
               "end with 1 if a call takes over 50 us at p99");
  CLI11_PARSE(app, argc, argv);
  return kvtide::bench::run(params);
}
