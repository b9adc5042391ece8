// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory_resource>
#include <vector>

namespace kvtide::core {

/// A job and what its ranks have said of it.
struct tracked_job {
  /// "No row failed."
  static constexpr std::uint32_t no_row
    = std::numeric_limits<std::uint32_t>::max();

  job work;
  /// Ranks that have not reported, one bit each: there are at most 64.
  std::uint64_t silent = 0;
  /// Ranks on which a copy may still run although its deadline has passed.
  std::uint64_t late = 0;
  /// Of a load: tokens that the device had without it.
  token_count local = 0;
  /// The first row that is not complete on some rank.
  std::uint32_t first_failed_row = no_row;
  /// From before the last reset: changes nothing but its slots (S11).
  bool stale = false;
  /// A reset kept its slots out of use for it (R9).
  bool slots_kept = false;
  /// Has its outcome (S9); kept only for its late ranks.
  bool settled = false;
  /// When it was planned, or its ranks were asked last.
  nanoseconds_t asked = 0;
  /// The engine was told that a load's blocks stay reserved.
  bool blocks_held = false;

  [[nodiscard]] bool ok() const noexcept {
    return first_failed_row == no_row;
  }

  [[nodiscard]] bool is_silent(rank_id rank) const noexcept {
    return (silent >> rank & 1) != 0;
  }

  [[nodiscard]] bool is_late(rank_id rank) const noexcept {
    return (late >> rank & 1) != 0;
  }

  /// The host slots of all rows.
  [[nodiscard]] std::vector<slot_id> slots() const;

  /// All blocks that are copied.
  [[nodiscard]] std::vector<block_id> blocks() const;
};

/// Jobs in flight, and the one outcome that each of them gets (S9).
/// Ranks are 1 to 64, as in `options::ranks`.
class job_table {
public:
  /// What a report led to.
  enum class effect : std::uint8_t {
    /// Unknown job, unknown rank, or nothing that this rank could still say
    /// (R10).
    ignored,
    /// Other ranks are still missing.
    counted,
    /// Every rank has reported: the job has its outcome now.
    settled,
    /// The last late copy of a settled job has ended.
    drained,
  };

  /// @param memory where jobs are kept; outlives this. An assignment keeps it.
  explicit job_table(std::uint32_t ranks, std::pmr::memory_resource* memory
                                          = std::pmr::get_default_resource())
    : jobs_(memory), ranks_(ranks) {
    // nop
  }

  [[nodiscard]] job_id next_id() const noexcept {
    return next_id_;
  }

  /// Takes the next id for `work` and starts to track it.
  /// @returns a reference that is valid until the job is erased
  tracked_job& add(job work);

  /// Takes an id for a job that fails before it starts.
  job_id skip_id() noexcept {
    return next_id_++;
  }

  [[nodiscard]] tracked_job* find(job_id id);

  void erase(job_id id);

  effect report(job_id id, rank_id rank, job_status status,
                std::uint32_t first_failed_row);

  /// Makes all jobs stale (S11).
  void forget_all();

  /// All jobs below this id have an outcome.
  [[nodiscard]] job_id settled_below() const noexcept;

  /// Jobs in ascending order.
  [[nodiscard]] const std::pmr::map<job_id, tracked_job>& all() const noexcept {
    return jobs_;
  }

  /// Jobs without an outcome, stale ones included.
  [[nodiscard]] std::size_t running() const noexcept {
    return running_;
  }

  /// Stores among them.
  [[nodiscard]] std::size_t running_stores() const noexcept {
    return running_stores_;
  }

private:
  std::pmr::map<job_id, tracked_job> jobs_;
  std::uint32_t ranks_ = 0;
  job_id next_id_ = 0;
  std::size_t running_ = 0;
  std::size_t running_stores_ = 0;
};

} // namespace kvtide::core
