// SPDX-License-Identifier: Apache-2.0

/// @file
/// The engines that a program of contract tests is about.

#pragma once

#include "tests/gpu/engine_rig.hpp"
#include "tests/gpu/test_memory.hpp"

#include <cstddef>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace kvtide::gpu {

struct engine_kind {
  const char* name = "";

  /// Before anything of a test is made: a fresh machine.
  void (*start)() = [] {};

  /// Why this engine cannot be tested here, or empty.
  std::string (*missing)() = [] { return std::string{}; };

  /// A job that hangs stops those of all streams: copies are host functions,
  /// and those share a thread.
  bool hangs_together = false;

  /// Behind everything of a test.
  void (*check)() = [] {};

  /// How many fragments a test may give to one job.
  std::size_t many = 10'000;

  test_memory::home_maker make_home = nullptr;

  /// @param memory what is to be copied; outlives the rig
  std::unique_ptr<engine_rig> (*make)(host_engine_config config,
                                      memory_home& memory)
    = nullptr;
};

inline void PrintTo(const engine_kind& kind, std::ostream* out) {
  *out << kind.name;
}

/// Defined once per program.
std::vector<engine_kind> engine_kinds();

} // namespace kvtide::gpu
