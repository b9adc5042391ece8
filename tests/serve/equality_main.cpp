// SPDX-License-Identifier: Apache-2.0

/// @file
/// Compares answers of the example engine with those of a straight computation,
/// in every situation that offloading brings. Exit code 0 means that all are
/// equal, that every situation came about, that wrong bytes were noticed, and
/// that nothing is left over; 1 the opposite; 2 wrong options.

#include "tests/serve/equality.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  using namespace serve;
  auto prompts = std::size_t{2'000};
  auto seed = std::uint64_t{1};
  auto app = CLI::App{"Asks the same prompts with offloading off, on, after "
                      "reloads, preemptions and failed loads, and compares."};
  app
    .add_option("--prompts", prompts,
                "Prompts, half of them for each model, each in all situations")
    ->check(CLI::Range(std::size_t{2}, std::size_t{1'000'000}))
    ->capture_default_str();
  app.add_option("--seed", seed, "Of the prompts and the weights")
    ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& reason) {
    return app.exit(reason) == 0 ? 0 : 2;
  }
  const auto start = std::chrono::steady_clock::now();
  auto all = std::vector<test::comparison>{};
  auto faults = std::size_t{0};
  for (const auto variant :
       {model_variant::full_attention, model_variant::sliding_window}) {
    const auto share = variant == model_variant::full_attention
                       ? (prompts + 1) / 2
                       : prompts / 2;
    const auto known = test::answer_straight(
      variant, seed + (variant == model_variant::sliding_window ? 1 : 0),
      share);
    for (const auto what : test::all_situations) {
      all.push_back(test::compare(known, what));
      faults += all.back().faults.size();
    }
  }
  std::fputs(test::make_table(all).c_str(), stdout);
  const auto spent
    = std::chrono::duration<double>(std::chrono::steady_clock::now() - start);
  std::printf("%zu prompts, seed %llu, %.0f s: %s\n", prompts,
              static_cast<unsigned long long>(seed), spent.count(),
              faults == 0 ? "equal everywhere" : "FAULTS");
  return faults == 0 ? 0 : 1;
}
