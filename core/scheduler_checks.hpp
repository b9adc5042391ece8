// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "core/job_table.hpp"
#include "core/life_check.hpp"
#include "core/load_check.hpp"
#include "core/order_log.hpp"
#include "core/outcome_check.hpp"
#include "core/slot_check.hpp"
#include "core/store_offer.hpp"

#include <cstdint>

namespace kvtide::core {

/// What the scheduler's order checker knows: it is told facts as they happen,
/// changes nothing, and complains to the order log. Each fact costs at most one
/// look per row of a job.
class scheduler_checks {
public:
  /// @param slots_are_kept no reset hands out slots of running copies (S8, R9)
  scheduler_checks(order_log& log, std::uint32_t ranks, bool slots_are_kept)
    : lives(log), loads(log), outcomes(log, ranks), slots_(log),
      slots_are_kept_(slots_are_kept) {
    // nop
  }

  /// A job with these slots is about to start. Without effect, but for the
  /// time that it saves.
  void expect(const store_grant& grant) const {
    for (const auto& accepted : grant.accepted)
      slots_.expect(accepted.slot);
  }

  void job_started(const job& work);

  /// A rank's report was accepted.
  void rank_reported(job_id id, rank_id rank, job_status status) {
    if (status == job_status::done)
      outcomes.rank_done(id, rank);
  }

  /// The last report came.
  void job_settled(const tracked_job& entry);

  /// No copy of the job touches anything any more.
  void copies_ended(const tracked_job& entry);

  /// All jobs are stale from here on (S11).
  void reset(job_id next);

  life_check lives;
  load_check loads;
  outcome_check outcomes;

private:
  slot_check slots_;
  bool slots_are_kept_;
};

} // namespace kvtide::core
