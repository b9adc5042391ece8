// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

namespace kvtide::gpu {

/// Says behind which jobs a job has to wait because of the host slots that it
/// touches (S8): a store behind all earlier jobs on the slot, a load behind
/// the last store. Owned by one engine, which guards it.
class slot_order {
public:
  /// Appends to `before` the jobs that `id` must wait for, possibly some of
  /// them twice, and remembers `id`.
  void add(job_id id, job_kind kind, const std::vector<slot_id>& slots,
           std::vector<job_id>& before);

  /// Forgets a job that ended; `slots` as given to `add`.
  void remove(job_id id, const std::vector<slot_id>& slots);

  /// Slots on which jobs are in flight.
  [[nodiscard]] std::size_t size() const noexcept {
    return users_.size();
  }

private:
  struct users {
    std::optional<job_id> writer;
    /// Since the writer.
    std::vector<job_id> readers;
  };

  std::unordered_map<slot_id, users> users_;
};

} // namespace kvtide::gpu
