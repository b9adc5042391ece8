// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/answers.hpp"

#include "tests/explore/choice.hpp"
#include "tests/explore/chooser.hpp"
#include "tests/explore/findings.hpp"
#include "tests/explore/scenario.hpp"
#include "tests/explore/world.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kvtide::explore {

/// What came of one run.
struct outcome {
  std::optional<finding> found;
  schedule picks;
  /// Stands for the order of all events.
  std::uint64_t fingerprint = 0;
  std::vector<std::string> trace;
  /// All events, and how many of them came before each pick.
  std::vector<choice> performed;
  std::vector<std::size_t> decided_at;
  /// What the runtime counted; none if it broke before its end.
  std::optional<stats> counted;
  /// The same calls one after the other had the same answers (S1).
  bool compared = false;
};

/// Runs a scenario, then the same calls and outcomes one after the other: the
/// answers must be the same (S1). That is left out with `before`, whose doings
/// are not recorded, and where `history::busy_in_time` leaves open what came
/// first.
[[nodiscard]] outcome run(const scenario& what, chooser& next,
                          bool traced = false, const interference& before = {});

/// With `cuda_in_turn` the seed says how the engine copies, too.
[[nodiscard]] outcome run_seed(const scenario& what, std::uint64_t seed);

/// The same scenario with the one device that a seed takes.
[[nodiscard]] scenario with_device_of(scenario what, std::uint64_t seed);

/// What came of many runs.
struct sweep_result {
  std::uint64_t runs = 0;
  /// Those among them whose answers were compared (S1).
  std::uint64_t compared = 0;
  /// Fingerprints of all orders of events.
  std::set<std::uint64_t> distinct;
  /// The last seed that was run.
  std::uint64_t seed = 0;
  /// The outcome of `seed`, if it broke a rule.
  std::optional<outcome> broken;
};

/// Runs all seeds from `first` to `last`, or until one breaks a rule: the next
/// ones would mostly break the same.
/// @param go_on hears of each run that broke nothing; false ends the sweep
[[nodiscard]] sweep_result
run_seeds(const scenario& what, std::uint64_t first, std::uint64_t last,
          const std::function<bool(const outcome&, std::uint64_t runs)>& go_on);

/// Takes away picks as long as the same rule stays broken.
/// @param budget runs that it may take
[[nodiscard]] schedule shrink(const scenario& what, const schedule& picks,
                              const std::string& rule, std::size_t budget,
                              const interference& before = {});

/// How an exhaustive search ended.
struct search_result {
  std::size_t runs = 0;
  /// Orders that were left out because they differ only in the order of events
  /// on different ranks.
  std::size_t skipped = 0;
  /// All schedules within the bound were run.
  bool complete = false;
  std::optional<schedule> failing;
};

/// Runs all schedules that deviate from the plain one at most `deviations`
/// times: a bounded search (delay bounding) with partial-order reduction.
/// @param go_on hears how many runs there were; false ends the search
[[nodiscard]] search_result
search_all(const scenario& what, std::size_t deviations, std::size_t most_runs,
           const std::function<bool(std::size_t runs)>& go_on);

} // namespace kvtide::explore
