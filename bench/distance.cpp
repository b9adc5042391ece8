// SPDX-License-Identifier: Apache-2.0

// What does it cost a step that its ranks live in other processes?
//
//   tools/make-certificates certs engine worker
//   bench-distance --certificates certs --json distance.json
//
// The same engine with ranks in its own process, in processes of their own on
// loopback, and the same with TLS. Every rank begins and ends each step at
// once, so that what remains is the runtime and the way to it. No step has a
// flush. Times are of one clock, which all processes of a machine share.

#include "bench/distance_run.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace kvtide::bench {
namespace {

struct parameters {
  distance_config run;
  std::uint32_t ranks = 4;
  int rounds = 5;
  std::string json;
};

using round_times = std::vector<step_times>;

/// What is measured, and of each round what came of it.
struct measured {
  rank_places where;
  /// Which one has as many ranks, all of them here.
  std::size_t baseline = 0;
  std::vector<round_times> rounds;
};

struct column {
  const char* name;
  double step_times::*field;
};

constexpr column columns[] = {
  {"call of step()", &step_times::call},
  {"step() to plan", &step_times::plan},
  {"step() to fence known, ranks here", &step_times::here},
  {"step() to fence known, all ranks", &step_times::ready},
  {"whole step", &step_times::whole},
};

double part_of(std::vector<double> values, double part) {
  const auto place = static_cast<std::ptrdiff_t>(
    part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

double part_of(const round_times& times, double step_times::*field,
               double part) {
  auto values = std::vector<double>{};
  values.reserve(times.size());
  for (const auto& one : times)
    values.push_back(one.*field);
  return part_of(std::move(values), part);
}

/// Over the rounds: median, least and most.
std::string spread(const std::vector<double>& rounds, int digits) {
  char out[96];
  std::snprintf(out, sizeof(out), "%.*f (%.*f to %.*f)", digits,
                part_of(rounds, 0.5), digits, part_of(rounds, 0), digits,
                part_of(rounds, 1));
  return out;
}

/// One number per round.
struct row {
  std::vector<double> p50;
  std::vector<double> p99;
  std::vector<double> p50_ratio;
  std::vector<double> p99_ratio;
};

row row_of(const measured& x, const measured& baseline, const column& what) {
  auto out = row{};
  for (std::size_t i = 0; i < x.rounds.size(); ++i) {
    out.p50.push_back(part_of(x.rounds[i], what.field, 0.5));
    out.p99.push_back(part_of(x.rounds[i], what.field, 0.99));
    out.p50_ratio.push_back(out.p50.back()
                            / part_of(baseline.rounds[i], what.field, 0.5));
    out.p99_ratio.push_back(out.p99.back()
                            / part_of(baseline.rounds[i], what.field, 0.99));
  }
  return out;
}

nlohmann::ordered_json print(const std::vector<measured>& all) {
  auto out = nlohmann::ordered_json::array();
  std::printf(
    "| ranks | us | p50 | p99 | p50 by that of all here | p99 by that "
    "of all here |\n| --- | --- | ---: | ---: | ---: | ---: |\n");
  for (const auto& one : all)
    for (const auto& what : columns) {
      if (one.where.local == 0 && what.field == &step_times::here)
        continue;
      const auto cells = row_of(one, all[one.baseline], what);
      std::printf(
        "| %s | %s | %s | %s | %s | %s |\n", one.where.name.c_str(), what.name,
        spread(cells.p50, 0).c_str(), spread(cells.p99, 0).c_str(),
        spread(cells.p50_ratio, 2).c_str(), spread(cells.p99_ratio, 2).c_str());
      out.push_back({{"ranks", one.where.name},
                     {"what", what.name},
                     {"p50", cells.p50},
                     {"p99", cells.p99},
                     {"p50_ratio", cells.p50_ratio},
                     {"p99_ratio", cells.p99_ratio}});
    }
  return out;
}

std::vector<measured> what_to_measure(const parameters& params) {
  auto out = std::vector<measured>{};
  const auto add = [&](std::size_t baseline, std::string name,
                       std::uint32_t local, std::uint32_t remote) {
    out.push_back({{name, local, remote, false}, baseline, {}});
    if (remote > 0 && !params.run.certificates.empty())
      out.push_back({{name + ", TLS", local, remote, true}, baseline, {}});
  };
  add(0, "1 here", 1, 0);
  add(0, "1 remote", 0, 1);
  if (params.ranks == 1)
    return out;
  const auto others = params.ranks - 1;
  const auto baseline = out.size();
  add(baseline, std::to_string(params.ranks) + " here", params.ranks, 0);
  add(baseline, "1 here, " + std::to_string(others) + " remote", 1, others);
  return out;
}

int run(const parameters& params) {
  auto all = what_to_measure(params);
  // In turns, each round beginning with another one.
  for (std::size_t round = 0; round < static_cast<std::size_t>(params.rounds);
       ++round)
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto& next = all[(round + i) % all.size()];
      std::fprintf(stderr, "round %zu of %d: %s\n", round + 1, params.rounds,
                   next.where.name.c_str());
      next.rounds.push_back(measure_distance(params.run, next.where));
    }
  std::printf("%zu requests, %llu steps in each of %d rounds, %u cores\n\n",
              params.run.load.requests,
              static_cast<unsigned long long>(params.run.steps), params.rounds,
              std::thread::hardware_concurrency());
  auto rows = print(all);
  if (!params.json.empty())
    std::ofstream{params.json}
      << nlohmann::ordered_json{{"cores", std::thread::hardware_concurrency()},
                                {"requests", params.run.load.requests},
                                {"steps", params.run.steps},
                                {"rounds", params.rounds},
                                {"rows", std::move(rows)}}
           .dump(2)
      << '\n';
  return 0;
}

} // namespace
} // namespace kvtide::bench

int main(int argc, char** argv) {
  auto params = kvtide::bench::parameters{};
  auto app = CLI::App{"Measures steps whose ranks live in other processes "
                      "beside steps whose ranks live here."};
  app.add_option("--steps", params.run.steps, "steps that count")
    ->check(CLI::Range(1, 1'000'000));
  app.add_option("--warm-up", params.run.warm_up, "steps before them")
    ->check(CLI::Range(0, 1'000'000));
  app.add_option("--requests", params.run.load.requests, "running requests")
    ->check(CLI::Range(1, 10'000));
  app.add_option("--ranks", params.ranks, "ranks of the larger groups")
    ->check(CLI::Range(1, 16));
  app.add_option("--rounds", params.rounds, "how often each group is measured")
    ->check(CLI::Range(1, 100));
  app
    .add_option("--certificates", params.run.certificates,
                "measure TLS too: a folder that tools/make-certificates made "
                "for engine and worker")
    ->check(CLI::ExistingDirectory);
  app.add_option("--json", params.json, "write all figures to this file");
  CLI11_PARSE(app, argc, argv);
  return kvtide::bench::run(params);
}
