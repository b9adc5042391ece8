// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include <cstddef>
#include <cstdint>
#include <map>

namespace kvtide::core {

/// How jobs ended on one rank, for as long as somebody may ask again: a report
/// may be lost with a connection. Memory: the jobs that are not settled on all
/// ranks.
class outcome_log {
public:
  struct outcome {
    job_status status = job_status::done;
    std::uint32_t first_failed_row = 0;
  };

  /// The first outcome of a job stays (S9).
  void note(job_id id, outcome what) {
    outcomes_.emplace(id, what);
  }

  /// Null for a job that has no outcome, or had one that was forgotten.
  [[nodiscard]] const outcome* find(job_id id) const {
    const auto found = outcomes_.find(id);
    return found != outcomes_.end() ? &found->second : nullptr;
  }

  /// Nobody asks for these any more.
  void forget_below(job_id id) {
    outcomes_.erase(outcomes_.begin(), outcomes_.lower_bound(id));
  }

  [[nodiscard]] std::size_t size() const noexcept {
    return outcomes_.size();
  }

private:
  std::map<job_id, outcome> outcomes_;
};

} // namespace kvtide::core
