// SPDX-License-Identifier: Apache-2.0

/// @file
/// Failures on purpose, for tests of whoever uses an engine.

#pragma once

#include "kvtide/ids.hpp"

#include <cstdint>

namespace kvtide::gpu {

enum class fault_kind : std::uint8_t {
  none,
  /// Rows before `row` are copied, then the job fails.
  fail,
  /// The job takes `delay` longer and keeps its stream busy meanwhile.
  delay,
  /// The job is never reported. Virtual engine: only it and the jobs ordered
  /// behind it by slot or `after` hang. Real engine: all jobs behind it on its
  /// stream hang too, until the engine is destroyed; on a GPU with a pool that
  /// is not pinned, all jobs.
  hang,
};

/// What goes wrong with one job.
struct copy_fault {
  fault_kind kind = fault_kind::none;
  std::uint32_t row = 0;
  nanoseconds_t delay = 0;
};

} // namespace kvtide::gpu
