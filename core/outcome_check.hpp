// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "core/job_window.hpp"
#include "core/order_log.hpp"

#include <cstdint>

namespace kvtide::core {

/// Checks that each job has one outcome and is published only if every rank has
/// said that it is done (S9), and that a job from before a reset changes
/// nothing (S11).
class outcome_check {
public:
  outcome_check(order_log& log, std::uint32_t ranks)
    : log_(log), ranks_(ranks), all_(~std::uint64_t{0} >> (64 - ranks)) {
    // nop
  }

  void started(job_id id);

  /// A rank's report was accepted: all bytes are there.
  void rank_done(job_id id, rank_id rank);

  /// The job has its outcome.
  void settled(job_id id);

  /// The outcome changes the pool or a request.
  void took_effect(job_id id, bool ok);

  /// The job is forgotten.
  void erased(job_id id) {
    jobs_.erase(id);
  }

  /// Jobs below `next` are over as far as anybody can see.
  void reset(job_id next) {
    oldest_ = next;
  }

private:
  struct entry {
    /// One bit per rank that is done; there are at most 64.
    std::uint64_t done = 0;
    bool settled = false;
  };

  // Off the path that every job takes.
  [[gnu::cold]] void complain_of_second(job_id id);
  [[gnu::cold]] void complain_of_missing(job_id id, std::uint64_t done);
  [[gnu::cold]] void complain_of_stale(job_id id);

  order_log& log_;
  std::uint32_t ranks_;
  /// One bit per rank.
  std::uint64_t all_;
  /// Started after the last reset.
  job_id oldest_ = 0;
  job_window<entry> jobs_;
};

} // namespace kvtide::core
