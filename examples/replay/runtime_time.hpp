// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>

namespace kvtide::replay {

/// Wall time that the engine's thread spent in the runtime. All other time is
/// the model's: it plans, and fills and compares bytes.
struct runtime_time {
  /// In calls of the runtime and its ranks that a serving engine makes, each
  /// until its answer, if it has one.
  std::chrono::nanoseconds calls{0};
  /// Looking for notices, and asking for cache events and counters.
  std::chrono::nanoseconds news{0};
  /// Waiting while the model had nothing else to do. Real clock: for a notice.
  /// Simulated clock: until time had moved and the copies that were due by then
  /// were made.
  std::chrono::nanoseconds waits{0};

  [[nodiscard]] std::chrono::nanoseconds all() const noexcept {
    return calls + news + waits;
  }
};

/// What the devices of all ranks copied.
struct copy_work {
  std::uint64_t bytes = 0;
  /// Wall time of the copying alone, summed over all streams.
  std::chrono::nanoseconds time{0};
};

} // namespace kvtide::replay
