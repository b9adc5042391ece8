// SPDX-License-Identifier: Apache-2.0

/// @file
/// kvtide-conformance: replays vector files through the actor system and
/// compares the answers. docs/conformance.md says how to use it.

#include "tests/conformance/replay.hpp"
#include "tests/conformance/vector_files.hpp"
#include "tests/conformance/vector_reader.hpp"

#include <CLI/CLI.hpp>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace kvtide::conformance {
namespace {

constexpr auto exit_same = 0;
constexpr auto exit_mismatch = 1;
constexpr auto exit_invalid = 2;

void complain(const std::string& text) {
  std::cerr << "kvtide-conformance: " << text << '\n';
}

struct command {
  std::vector<std::string> paths;
  bool list = false;
  bool trace = false;
  std::string stub;
  plan_delivery delivery = plan_delivery::direct;
};

struct totals {
  std::size_t files = 0;
  std::size_t lines = 0;
  std::size_t mismatches = 0;
  /// Of the files, those that cannot be read or are no vector.
  std::size_t unusable = 0;
  traffic handled;
};

void define(CLI::App& app, command& cmd) {
  app
    .add_option("PATH", cmd.paths,
                "vector files, or directories with *.jsonl files at any depth")
    ->required();
  app.add_flag("--list", cmd.list,
               "read and check the files, print one line each, replay nothing");
  app.add_flag("--trace", cmd.trace, "print each message that is handled");
  // CLI11's own words for an enum take its numbers, too, and show them.
  app
    .add_option_function<std::string>(
      "--delivery",
      [&cmd](const std::string& word) {
        cmd.delivery
          = word == "direct" ? plan_delivery::direct : plan_delivery::by_engine;
      },
      "how plans reach the ranks (direct, by_engine; default direct)")
    ->type_name("WORD")
    ->check(CLI::Validator{[](const std::string& word) {
                             return word == "direct" || word == "by_engine"
                                    ? std::string{}
                                    : word + " is none of direct, by_engine";
                           },
                           ""});
  app
    .add_option("--stub", cmd.stub,
                "ACTOR:MESSAGE, a handler that does nothing")
    ->group("")
    ->check([](const std::string& text) {
      return text.find(':') == std::string::npos ? "want ACTOR:MESSAGE" : "";
    });
  app.footer(
    "Prints one line per mismatch. Exit code: 0 if all answers are as "
    "expected,\n1 if not, 2 if a path or a file cannot be used or the output "
    "cannot be written.");
}

replay_options options_of(const command& cmd) {
  auto opts = replay_options{};
  opts.delivery = cmd.delivery;
  if (cmd.trace)
    opts.trace = &std::cout;
  if (const auto colon = cmd.stub.find(':'); colon != std::string::npos)
    opts.stub
      = handler_name{cmd.stub.substr(0, colon), cmd.stub.substr(colon + 1)};
  return opts;
}

void play(const std::string& path, const command& cmd, totals& sum) {
  const auto file = read_vector_file(path);
  ++sum.files;
  if (!file) {
    std::cerr << file.failure().text << '\n';
    ++sum.unusable;
    return;
  }
  sum.lines += file.value().line_count;
  if (cmd.list) {
    std::cout << path << ": " << file.value().name << ", "
              << file.value().line_count << " lines\n";
    return;
  }
  const auto outcome = replay(file.value(), options_of(cmd));
  for (const auto& text : outcome.mismatches)
    std::cout << text << '\n';
  std::cout.flush();
  sum.mismatches += outcome.mismatches.size();
  add(sum.handled, outcome.handled);
}

void print_traffic(const traffic& handled) {
  auto driver = std::size_t{0};
  for (const auto& [name, count] : handled)
    if (name.actor.rfind("driver_", 0) == 0)
      driver += count;
  std::cout << "messages handled:";
  for (const auto* kind :
       {"scheduler", "request", "cache_manager", "gpu_worker"})
    std::cout << ' ' << kind << '=' << handled_by(handled, kind);
  std::cout << " driver=" << driver << '\n';
}

int run(const command& cmd) {
  const auto files = find_vector_files(cmd.paths, complain);
  if (!files) {
    complain(files.failure().text);
    return exit_invalid;
  }
  auto sum = totals{};
  for (const auto& path : files.value())
    play(path, cmd, sum);
  if (!cmd.list)
    print_traffic(sum.handled);
  std::cout << "files=" << sum.files << " lines=" << sum.lines
            << " mismatches=" << sum.mismatches;
  // Last, so that the line never looks like success.
  if (sum.unusable > 0)
    std::cout << " unusable=" << sum.unusable;
  std::cout << std::endl;
  if (sum.unusable > 0)
    return exit_invalid;
  return sum.mismatches == 0 ? exit_same : exit_mismatch;
}

int run(int argc, char** argv) {
  auto app = CLI::App{"Replays conformance vectors through kvtide's actors and "
                      "compares the answers.",
                      "kvtide-conformance"};
  auto cmd = command{};
  define(app, cmd);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0)
      return app.exit(problem); // Help.
    // One line, also for words on the command line that have several.
    auto what = std::string{problem.what()};
    std::replace(what.begin(), what.end(), '\n', ' ');
    complain(what + "; see --help");
    return exit_invalid;
  }
  // Mismatches say it; what actors log about them would hide the lines.
  if (!cmd.trace)
    spdlog::register_logger(std::make_shared<spdlog::logger>(
      "kvtide", std::make_shared<spdlog::sinks::null_sink_mt>()));
  return run(cmd);
}

} // namespace
} // namespace kvtide::conformance

int main(int argc, char** argv) {
  using namespace kvtide::conformance;
  try {
    const auto status = run(argc, argv);
    if (std::cout.flush())
      return status;
    complain("cannot write to standard output");
  } catch (const std::exception& problem) {
    complain(problem.what());
  }
  return exit_invalid;
}
