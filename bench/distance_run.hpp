// SPDX-License-Identifier: Apache-2.0

/// @file
/// One engine whose ranks are here or in processes of their own, step by step.

#pragma once

#include "bench/load.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kvtide::bench {

struct distance_config {
  load_config load{256, 1'024, 1, false, 0, 1, rule_set::safe, 0};
  std::uint64_t warm_up = 500;
  std::uint64_t steps = 5'000;
  /// A folder of tools/make-certificates with an `engine` and a `worker`.
  std::string certificates;
};

/// Where the ranks are, and how they are reached. Ranks that are here come
/// first.
struct rank_places {
  std::string name;
  std::uint32_t local = 0;
  std::uint32_t remote = 0;
  bool tls = false;
};

/// Microseconds of one step, from before the engine's call.
struct step_times {
  /// `runtime::step` has returned.
  double call = 0;
  /// The engine has its plan.
  double plan = 0;
  /// The last of the ranks that are here may compute; zero if none is.
  double here = 0;
  /// The last of all ranks may compute.
  double ready = 0;
  /// The engine knows both, and goes on to the next step.
  double whole = 0;
};

/// Runs the engine, and each remote rank, in a process of its own, one step
/// behind the other without a pause. Ends the program if one of them fails.
/// @pre no thread but the caller's was ever started in this process
/// @returns the steps behind those that warm up
[[nodiscard]] std::vector<step_times>
measure_distance(const distance_config& config, const rank_places& where);

} // namespace kvtide::bench
