// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <tsl/robin_map.h>

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

namespace kvtide::core {

/// The jobs that one rank has handed to its device, and when each of them is
/// late. Every job leaves exactly once; what is late stays until its copy has
/// ended, because its memory may still be touched (S9).
class transfer_ledger {
public:
  enum class ending {
    /// Not in the ledger: never added, or ended before.
    unknown,
    in_time,
    /// `take_late` has named it, or it was made late.
    late,
  };

  /// @param deadline longest time between `add` and `end`, not negative.
  explicit transfer_ledger(nanoseconds_t deadline) : deadline_(deadline) {
    // nop
  }

  /// @pre `now` is not below that of an earlier call.
  /// A job that is there already stays as it is.
  void add(job_id id, nanoseconds_t now);

  [[nodiscard]] bool contains(job_id id) const {
    return late_.count(id) > 0;
  }

  /// The jobs that are there. Ascending.
  [[nodiscard]] std::vector<job_id> ids() const;

  /// Removes a job whose copy has ended.
  ending end(job_id id);

  /// Jobs that became late by `now`, in the order of `add`. Each is named once.
  [[nodiscard]] std::vector<job_id> take_late(nanoseconds_t now);

  /// A job that is late for others: `take_late` does not name it any more.
  /// Without effect if it is not there.
  void make_late(job_id id);

  /// The same for all jobs.
  void make_all_late();

  /// When the next job is late, or `never`.
  [[nodiscard]] nanoseconds_t next_due() const;

  /// Removes all jobs. Ascending ids, each with its ending.
  [[nodiscard]] std::vector<std::pair<job_id, ending>> clear();

  /// Jobs whose copies have not ended, late ones included.
  [[nodiscard]] std::size_t size() const noexcept {
    return late_.size();
  }

private:
  /// Drops leading entries whose jobs have ended, or are late already.
  void trim();

  nanoseconds_t deadline_;
  /// Per job: is it late?
  tsl::robin_map<job_id, bool> late_;
  /// Jobs that are not late yet by the moment at which they are, ascending;
  /// jobs in the middle may have ended.
  std::deque<std::pair<nanoseconds_t, job_id>> due_;
};

} // namespace kvtide::core
