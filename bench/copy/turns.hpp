// SPDX-License-Identifier: Apache-2.0

/// @file
/// Ways to move the same bytes, measured in turns, so that all see the same
/// machine.

#pragma once

#include "kvtide/result.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kvtide::bench {

struct way {
  std::string name;
  /// Moves the bytes once. @returns seconds
  std::function<result<double>()> run;
};

/// Runs every way once per round. Each round begins with another way.
/// @returns seconds by way and round
[[nodiscard]] result<std::vector<std::vector<double>>>
measure_in_turns(const std::vector<way>& ways, std::uint32_t warm_up_rounds,
                 std::uint32_t rounds);

/// @returns seconds of wall time that `fun` took, or its error
[[nodiscard]] result<double> time_of(const std::function<error()>& fun);

/// True once somebody has asked this process to end: what was measured until
/// then is reported.
[[nodiscard]] bool interrupted() noexcept;

/// Makes SIGINT and SIGTERM do that; the second one ends the process.
void take_interrupts();

} // namespace kvtide::bench
