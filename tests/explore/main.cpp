// SPDX-License-Identifier: Apache-2.0

/// @file
/// kvtide-explore: runs chosen schedules and says which rule they break.

#include "actors/log.hpp"
#include "tests/explore/run.hpp"

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using namespace kvtide::explore;

constexpr auto clean = 0;
constexpr auto broken = 1;
constexpr auto misused = 2;

struct arguments {
  std::vector<std::string> scenarios;
  std::uint64_t seed = 1;
  std::string seeds;
  /// None, and an empty list, differ: the latter is the plain schedule.
  std::optional<std::string> choices;
  bool trace = false;
  bool list = false;
  bool exhaustive = false;
  bool no_progress = false;
  std::size_t deviations = 2;
  std::size_t most_runs = 100'000;
  std::size_t shrink_runs = 400;
};

struct seed_range {
  std::uint64_t first = 1;
  std::uint64_t last = 1;
};

/// "3..10"
bool parse(const std::string& text, seed_range& out) {
  const auto dots = text.find("..");
  if (dots == std::string::npos)
    return false;
  return CLI::detail::lexical_cast(text.substr(0, dots), out.first)
      && CLI::detail::lexical_cast(text.substr(dots + 2), out.last)
      && out.first <= out.last;
}

void list_scenarios() {
  auto width = std::size_t{0};
  for (const auto& x : all_scenarios())
    width = std::max(width, x.name.size());
  for (const auto& x : all_scenarios())
    std::cout << x.name << std::string(width + 2 - x.name.size(), ' ')
              << x.about << '\n';
}

void print(const std::vector<std::string>& trace) {
  for (const auto& line : trace)
    std::cout << "  | " << line << '\n';
}

/// Shows the fewest choices that break the same rule, and what they lead to.
void tell_failure(const scenario& what, const outcome& seen,
                  std::size_t shrink_runs) {
  const auto fewer = shrink(what, seen.picks, seen.found->rule, shrink_runs);
  auto next = scripted_chooser{fewer};
  const auto again = run(what, next, true);
  const auto& found = again.found ? *again.found : *seen.found;
  const auto choices = to_text(fewer);
  std::cout << "  rule: " << found.rule << "\n  found: " << found.text
            << "\n  choices: " << (choices.empty() ? "none" : choices) << '\n';
  print(again.trace);
  std::cout << "  again: kvtide-explore --scenario " << what.name
            << " --choices '" << choices << "' --trace\n";
}

void progress(const arguments& how, const std::string& line) {
  if (!how.no_progress && ::isatty(STDERR_FILENO) == 1)
    std::cerr << '\r' << line << "   " << std::flush;
}

// -- what it can do -----------------------------------------------------------

/// @param label of the schedule
int run_one(const scenario& what, chooser& next, const std::string& label,
            bool trace, std::size_t shrink_runs) {
  const auto seen = run(what, next, trace);
  std::cout << "scenario " << what.name << ' ' << label << ": "
            << (seen.found ? "broken" : "clean") << ", "
            << seen.performed.size() << " events\n";
  if (seen.found)
    tell_failure(what, seen, shrink_runs);
  else
    print(seen.trace);
  return seen.found ? broken : clean;
}

int run_seeds(const std::vector<const scenario*>& which, seed_range seeds,
              const arguments& how) {
  auto total = std::uint64_t{0};
  auto distinct_total = std::uint64_t{0};
  auto violations = std::uint64_t{0};
  for (const auto* what : which) {
    auto distinct = std::set<std::uint64_t>{};
    auto runs = std::uint64_t{0};
    for (auto seed = seeds.first;; ++seed) {
      const auto seen = run_seed(*what, seed);
      ++runs;
      distinct.insert(seen.fingerprint);
      if (runs % 64 == 0)
        progress(how, what->name + " " + std::to_string(runs));
      if (seen.found) {
        std::cout << "scenario " << what->name << " seed " << seed
                  << ": broken\n";
        tell_failure(*what, seen, how.shrink_runs);
        ++violations;
        break; // The next ones would mostly be the same.
      }
      if (seed == seeds.last)
        break;
    }
    progress(how, "");
    std::cout << "scenario=" << what->name << " schedules=" << runs
              << " distinct=" << distinct.size() << std::endl;
    total += runs;
    distinct_total += distinct.size();
  }
  std::cout << "schedules=" << total << " distinct=" << distinct_total
            << " violations=" << violations
            << (violations > 0 ? ", each scenario stopped at its first" : "")
            << '\n';
  return violations > 0 ? broken : clean;
}

int search(const std::vector<const scenario*>& which, const arguments& how) {
  auto failed = false;
  for (const auto* what : which) {
    const auto result = search_all(*what, how.deviations, how.most_runs);
    std::cout << "scenario=" << what->name << " deviations<=" << how.deviations
              << " schedules=" << result.runs << " skipped=" << result.skipped
              << (result.complete ? " complete" : " not complete") << std::endl;
    if (!result.failing)
      continue;
    failed = true;
    auto next = scripted_chooser{*result.failing};
    tell_failure(*what, run(*what, next), how.shrink_runs);
  }
  return failed ? broken : clean;
}

int explore(const arguments& how) {
  if (how.list) {
    list_scenarios();
    return clean;
  }
  auto which = std::vector<const scenario*>{};
  for (const auto& name : how.scenarios) {
    if (name == "all") {
      for (const auto& x : all_scenarios())
        which.push_back(&x);
      continue;
    }
    which.push_back(find_scenario(name));
    if (which.back() == nullptr) {
      std::cerr << "kvtide-explore: there is no scenario '" << name
                << "'; --list names them\n";
      return misused;
    }
  }
  if (which.empty()) {
    std::cerr << "kvtide-explore: say --scenario NAME, or --scenario all, or "
                 "--list\n";
    return misused;
  }
  if (how.exhaustive)
    return search(which, how);
  auto seeds = seed_range{};
  if (!how.seeds.empty()) {
    if (!parse(how.seeds, seeds)) {
      std::cerr << "kvtide-explore: --seeds is '" << how.seeds
                << "'; write it as 1..1000\n";
      return misused;
    }
    return run_seeds(which, seeds, how);
  }
  if (which.size() > 1) {
    std::cerr << "kvtide-explore: several scenarios need --seeds A..B or "
                 "--exhaustive\n";
    return misused;
  }
  if (!how.choices) {
    auto next = random_chooser{how.seed};
    return run_one(*which.front(), next, "seed " + std::to_string(how.seed),
                   how.trace, how.shrink_runs);
  }
  auto picks = schedule{};
  if (!from_text(*how.choices, picks)) {
    std::cerr << "kvtide-explore: --choices is '" << *how.choices
              << "'; write it as '3:1 17:2', decision and pick\n";
    return misused;
  }
  auto next = scripted_chooser{picks};
  return run_one(*which.front(), next, "by choices", how.trace, 0);
}

} // namespace

int main(int argc, char** argv) {
  // What the runtime has to say of planned trouble is no news here.
  kvtide::log().set_level(spdlog::level::off);
  auto how = arguments{};
  auto app = CLI::App{
    "Runs kvtide with schedules of messages, copies, compute, time and deaths "
    "that a seed chooses, and says which rule they break.",
    "kvtide-explore"};
  app.add_option("--scenario", how.scenarios,
                 "what to run: a name of --list, or 'all'; may be repeated");
  app.add_option("--seed", how.seed, "the seed of one run")
    ->capture_default_str();
  app.add_option("--seeds", how.seeds, "A..B: runs all seeds from A to B");
  // CLI11 takes an empty text for no text, so its optional is of no use.
  auto choices = std::string{};
  const auto* chosen
    = app.add_option("--choices", choices,
                     "instead of a seed: the picks that differ from the plain "
                     "schedule, as printed for a run that failed");
  app.add_flag("--trace", how.trace, "print all events");
  app.add_flag("--list", how.list, "name the scenarios");
  app.add_flag("--exhaustive", how.exhaustive,
               "instead of seeds: all schedules that deviate a few times from "
               "the plain one");
  app.add_option("--deviations", how.deviations, "how often, for --exhaustive")
    ->capture_default_str();
  app
    .add_option("--max-runs", how.most_runs,
                "give up an exhaustive search after so many runs")
    ->capture_default_str();
  app
    .add_option("--shrink-runs", how.shrink_runs,
                "runs to spend on shortening the choices of a failure")
    ->capture_default_str();
  app.add_flag("--no-progress", how.no_progress, "no progress on stderr");
  try {
    app.parse(argc, argv);
    if (chosen->count() > 0)
      how.choices = choices;
    return explore(how);
  } catch (const CLI::ParseError& e) {
    const auto code = app.exit(e);
    return code == 0 ? clean : misused;
  } catch (const std::exception& e) {
    std::cerr << "kvtide-explore: " << e.what() << '\n';
    return misused;
  }
}
