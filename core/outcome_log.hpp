// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include "core/job_window.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

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
    if (id < oldest_ || find(id) != nullptr)
      return;
    outcomes_.insert(id, what);
    ++size_;
  }

  /// Null for a job that has no outcome, or had one that was forgotten.
  [[nodiscard]] const outcome* find(job_id id) const {
    return outcomes_.find(id);
  }

  /// Nobody asks for these any more.
  void forget_below(job_id id) {
    for (; oldest_ < id && size_ > 0; ++oldest_)
      if (find(oldest_) != nullptr) {
        outcomes_.erase(oldest_);
        --size_;
      }
    oldest_ = std::max(oldest_, id);
  }

  [[nodiscard]] std::size_t size() const noexcept {
    return size_;
  }

private:
  job_window<outcome> outcomes_;
  /// Older ones are forgotten.
  job_id oldest_ = 0;
  std::size_t size_ = 0;
};

} // namespace kvtide::core
