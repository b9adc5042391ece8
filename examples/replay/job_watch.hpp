// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/cache_event.hpp"

#include "examples/replay/report.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace kvtide::replay {

/// Follows jobs from outside, to count how often copies really overlap with
/// compute and with each other. Loads end with a notice, stores with the event
/// that announces their chunks; a store that fails is not seen to end.
class job_watch {
public:
  /// @param block_bytes Of one block on all ranks.
  job_watch(tally& counts, std::size_t block_bytes)
    : counts_(counts), block_bytes_(block_bytes) {
    // nop
  }

  /// Store jobs in flight.
  [[nodiscard]] std::size_t stores() const noexcept {
    return stores_;
  }

  void planned(const step_plan& plan);

  /// The load of a request ended before `next` was planned. Does nothing if it
  /// has none.
  void load_ended(request_id request, step_id next);

  /// Stored chunks were announced before `next` was planned.
  void heard(const std::vector<cache_event>& events, step_id next);

private:
  struct entry {
    job_kind kind = job_kind::store;
    step_id submitted = 0;
    std::size_t chunks_left = 0;
  };

  void ended(std::unordered_map<job_id, entry>::iterator which, step_id next);

  tally& counts_;
  std::size_t block_bytes_;
  std::unordered_map<job_id, entry> jobs_;
  std::unordered_map<request_id, job_id> loads_;
  std::size_t stores_ = 0;
  // Chunks that are being stored, by the hash of their key.
  std::unordered_map<std::uint64_t, job_id> storing_;
};

} // namespace kvtide::replay
