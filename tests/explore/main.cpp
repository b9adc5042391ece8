// SPDX-License-Identifier: Apache-2.0

/// @file
/// kvtide-explore: runs chosen schedules and says which rule they break.

#include "actors/log.hpp"
#include "tests/explore/run.hpp"

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace {

using namespace kvtide::explore;

constexpr auto clean = 0;
constexpr auto broken = 1;
constexpr auto misused = 2;
constexpr auto stopped = 130;

struct arguments {
  std::vector<std::string> scenarios;
  std::string device = "desk";
  std::uint64_t seed = 1;
  std::optional<std::string> seeds;
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

/// Decimal, and nothing else: CLI11 would take "010" for eight and "-1" for a
/// large number.
bool parse(const std::string& text, std::uint64_t& out) {
  const auto* end = text.data() + text.size();
  const auto [at, failure] = std::from_chars(text.data(), end, out);
  return failure == std::errc{} && at == end;
}

/// "3..10"
bool parse(const std::string& text, seed_range& out) {
  const auto dots = text.find("..");
  return dots != std::string::npos && parse(text.substr(0, dots), out.first)
      && parse(text.substr(dots + 2), out.last) && out.first <= out.last;
}

/// Rewrites a number so that CLI11 reads what is written.
std::string as_decimal(std::string& text) {
  auto number = std::uint64_t{0};
  if (!parse(text, number))
    return "'" + text + "' is no whole number from 0 to "
         + std::to_string(std::numeric_limits<std::uint64_t>::max());
  text = std::to_string(number);
  return {};
}

volatile std::sig_atomic_t interrupted = 0;

/// Many runs end with what they have found so far.
void end_when_interrupted() {
  const auto note = [](int) { interrupted = 1; };
  std::signal(SIGINT, note);
  std::signal(SIGTERM, note);
}

void list_scenarios() {
  auto width = std::size_t{0};
  for (const auto& x : all_scenarios())
    width = std::max(width, x.name.size());
  for (const auto& x : all_scenarios())
    std::cout << x.name << std::string(width + 2 - x.name.size(), ' ')
              << x.about << '\n';
}

/// For --help.
std::string device_names() {
  auto out = std::string{};
  for (const auto& x : all_copy_ways())
    out += (out.empty() ? "" : ", ") + x.name;
  return out;
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
            << (what.device == "desk" ? "" : " --device " + what.device)
            << " --choices '" << choices << "' --trace\n";
}

void progress(const arguments& how, const std::string& line) {
  if (!how.no_progress && ::isatty(STDERR_FILENO) == 1)
    std::cerr << "\r\x1b[K" << line << std::flush; // Over the last line.
}

/// Shows the progress of a long work.
/// @returns whether it goes on
bool goes_on(const arguments& how, const scenario& what, std::uint64_t runs) {
  if (runs % 64 == 0)
    progress(how, what.name + " " + std::to_string(runs));
  return interrupted == 0;
}

int status_of(std::uint64_t violations) {
  if (violations > 0)
    return broken;
  return interrupted != 0 ? stopped : clean;
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

int sweep(const std::vector<const scenario*>& which, seed_range seeds,
          const arguments& how) {
  auto total = std::uint64_t{0};
  auto distinct_total = std::uint64_t{0};
  auto compared = std::uint64_t{0};
  auto violations = std::uint64_t{0};
  for (const auto* what : which) {
    const auto swept = run_seeds(*what, seeds.first, seeds.last,
                                 [&](const outcome&, std::uint64_t runs) {
                                   return goes_on(how, *what, runs);
                                 });
    progress(how, "");
    if (swept.broken) {
      std::cout << "scenario " << what->name << " seed " << swept.seed
                << ": broken\n";
      tell_failure(with_device_of(*what, swept.seed), *swept.broken,
                   how.shrink_runs);
      ++violations;
    } else if (interrupted != 0) {
      std::cout << "stopped at scenario " << what->name << " seed "
                << swept.seed << '\n';
    }
    std::cout << "scenario=" << what->name << " schedules=" << swept.runs
              << " distinct=" << swept.distinct.size()
              << " compared=" << swept.compared << std::endl;
    total += swept.runs;
    compared += swept.compared;
    distinct_total += swept.distinct.size();
    if (interrupted != 0)
      break;
  }
  std::cout << "schedules=" << total << " distinct=" << distinct_total
            << " compared=" << compared << " violations=" << violations
            << (violations > 0 ? ", each scenario stopped at its first" : "")
            << '\n';
  return status_of(violations);
}

int search(const std::vector<const scenario*>& which, const arguments& how) {
  auto total = std::size_t{0};
  auto violations = std::size_t{0};
  for (const auto* what : which) {
    const auto result
      = search_all(*what, how.deviations, how.most_runs,
                   [&](std::size_t runs) { return goes_on(how, *what, runs); });
    progress(how, "");
    std::cout << "scenario=" << what->name << " deviations<=" << how.deviations
              << " schedules=" << result.runs << " skipped=" << result.skipped
              << (result.complete ? " complete" : " not complete") << std::endl;
    total += result.runs;
    if (result.failing) {
      ++violations;
      auto next = scripted_chooser{*result.failing};
      tell_failure(*what, run(*what, next), how.shrink_runs);
    }
    if (interrupted != 0)
      break;
  }
  std::cout << "schedules=" << total << " violations=" << violations << '\n';
  return status_of(violations);
}

int explore(const arguments& how) {
  if (how.list) {
    list_scenarios();
    return clean;
  }
  if (how.device != cuda_in_turn && find_copy_way(how.device) == nullptr) {
    std::cerr << "kvtide-explore: there is no device '" << how.device
              << "'; --help names them\n";
    return misused;
  }
  if (how.exhaustive && how.device != "desk") {
    std::cerr << "kvtide-explore: --exhaustive needs --device desk: what the "
                 "streams of two CUDA devices do is not independent, as one "
                 "source of chance orders their batches\n";
    return misused;
  }
  auto every = all_scenarios();
  for (auto& x : every)
    x.device = how.device;
  auto which = std::vector<const scenario*>{};
  for (const auto& name : how.scenarios) {
    if (name == "all") {
      for (const auto& x : every)
        which.push_back(&x);
      continue;
    }
    const auto found
      = std::find_if(every.begin(), every.end(),
                     [&](const scenario& x) { return x.name == name; });
    if (found == every.end()) {
      std::cerr << "kvtide-explore: there is no scenario '" << name
                << "'; --list names them\n";
      return misused;
    }
    if (std::find(which.begin(), which.end(), &*found) == which.end())
      which.push_back(&*found);
  }
  if (which.empty()) {
    std::cerr << "kvtide-explore: say --scenario NAME, or --scenario all, or "
                 "--list\n";
    return misused;
  }
  if (how.exhaustive) {
    end_when_interrupted();
    return search(which, how);
  }
  auto seeds = seed_range{};
  if (how.seeds) {
    if (!parse(*how.seeds, seeds)) {
      std::cerr << "kvtide-explore: --seeds is '" << *how.seeds
                << "'; write it as 1..1000, two whole numbers, the smaller one "
                   "first\n";
      return misused;
    }
    end_when_interrupted();
    return sweep(which, seeds, how);
  }
  if (which.size() > 1) {
    std::cerr << "kvtide-explore: several scenarios need --seeds A..B or "
                 "--exhaustive\n";
    return misused;
  }
  if (!how.choices) {
    auto next = random_chooser{how.seed};
    return run_one(with_device_of(*which.front(), how.seed), next,
                   "seed " + std::to_string(how.seed), how.trace,
                   how.shrink_runs);
  }
  auto picks = schedule{};
  if (!from_text(*how.choices, picks)) {
    std::cerr << "kvtide-explore: --choices is '" << *how.choices
              << "'; write it as '3:1 17:2', decision and pick\n";
    return misused;
  }
  auto next = scripted_chooser{picks};
  const auto status = run_one(with_device_of(*which.front(), 0), next,
                              "by choices", how.trace, 0);
  if (status != clean || next.all_applied())
    return status;
  std::cerr << "kvtide-explore: some of the --choices name decisions or picks "
               "that this schedule does not have; they are of another scenario "
               "or of other sources\n";
  return misused;
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
  app.footer(
    "Exits with 0 if no rule is broken, 1 if one is, 2 if the arguments "
    "are wrong\nor the output cannot be written, 130 if it was "
    "interrupted.");
  app
    .add_option("--scenario", how.scenarios,
                "what to run: a name of --list, or 'all'; may be repeated")
    ->allow_extra_args(false);
  app
    .add_option("--device", how.device,
                "who makes the copies: " + device_names() + ", or "
                  + cuda_in_turn
                  + ", which is each of the CUDA engine's in the turn of the "
                    "seeds")
    ->capture_default_str();
  const auto number = CLI::Validator{as_decimal, "NUMBER", "number"};
  auto* seed = app.add_option("--seed", how.seed, "the seed of one run")
                 ->transform(number)
                 ->capture_default_str();
  // CLI11 takes an empty text for no text, so its optional is of no use.
  auto range = std::string{};
  auto* seeds
    = app.add_option("--seeds", range, "A..B: runs all seeds from A to B")
        ->excludes(seed);
  auto text = std::string{};
  auto* choices
    = app
        .add_option("--choices", text,
                    "instead of a seed: the picks that differ from the plain "
                    "schedule, as printed for a run that failed")
        ->excludes(seed, seeds);
  auto* trace
    = app.add_flag("--trace", how.trace, "print all events")->excludes(seeds);
  app.add_flag("--list", how.list, "name the scenarios");
  auto* exhaustive
    = app
        .add_flag(
          "--exhaustive", how.exhaustive,
          "instead of seeds: all schedules that deviate a few times from "
          "the plain one")
        ->excludes(seed, seeds, choices, trace);
  app.add_option("--deviations", how.deviations, "how often, for --exhaustive")
    ->transform(number)
    ->needs(exhaustive)
    ->capture_default_str();
  app
    .add_option("--max-runs", how.most_runs,
                "give up an exhaustive search after so many runs; it says so "
                "then, and is no failure")
    ->transform(number)
    ->needs(exhaustive)
    ->capture_default_str();
  app
    .add_option("--shrink-runs", how.shrink_runs,
                "runs to spend on shortening the choices of a failure")
    ->transform(number)
    ->capture_default_str();
  app.add_flag("--no-progress", how.no_progress, "no progress on stderr");
  try {
    app.parse(argc, argv);
    if (choices->count() > 0)
      how.choices = text;
    if (seeds->count() > 0)
      how.seeds = range;
    const auto status = explore(how);
    if (std::cout.flush())
      return status;
    std::cerr << "kvtide-explore: cannot write to standard output\n";
    return misused;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0)
      return app.exit(e); // --help
    std::cerr << "kvtide-explore: " << e.what() << "; see --help\n";
    return misused;
  } catch (const std::exception& e) {
    std::cerr << "kvtide-explore: " << e.what() << '\n';
    return misused;
  }
}
