// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include <optional>
#include <vector>

namespace kvtide::core {

/// Checks the job ids that arrive on one path, so that a rank takes each job
/// once (S4, S12). Ids ascend from step to step; inside a step they come in any
/// order, because flushed stores travel ahead of the others. A load has its id
/// since its blocks were allocated and comes with the next step, so tails that
/// are planned in between (S13) overtake it. Memory: the ids of two steps.
class job_path {
public:
  /// What comes from now on belongs to a later step.
  void begin_step();

  /// Takes note of an id.
  /// @returns false if it was here before, or should have come with an earlier
  ///          step.
  [[nodiscard]] bool take(job_id id, job_kind kind);

  /// False for an id above all that were seen: nobody can wait for it (S4).
  [[nodiscard]] bool may_be_known(job_id id) const noexcept {
    return highest_ && id <= *highest_;
  }

  /// True for an id below all that were seen: if it was planned for this rank,
  /// then for an earlier life of it.
  [[nodiscard]] bool is_older(job_id id) const noexcept {
    return !lowest_ || id < *lowest_;
  }

private:
  struct step {
    /// Highest id of the steps before it.
    std::optional<job_id> floor;
    /// Ascending.
    std::vector<job_id> ids;

    [[nodiscard]] bool may_have(job_id id) const noexcept {
      return !floor || id > *floor;
    }
  };

  std::optional<job_id> lowest_;
  std::optional<job_id> highest_;
  step this_;
  step last_;
};

} // namespace kvtide::core
