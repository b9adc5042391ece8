// SPDX-License-Identifier: Apache-2.0

#include "core/scheduler_checks.hpp"

namespace kvtide::core {

void scheduler_checks::job_started(const job& work) {
  outcomes.started(work.id);
  lives.job_started(work.request);
  if (slots_are_kept_)
    slots_.started(work);
  if (work.kind == job_kind::load)
    loads.started(work);
}

void scheduler_checks::job_settled(const tracked_job& entry) {
  outcomes.settled(entry.work.id);
  if (!entry.stale)
    lives.job_settled(entry.work.request);
  if (entry.late == 0)
    copies_ended(entry);
  else // It is known for as long as its copy hangs, and nothing comes of it.
    outcomes.erased(entry.work.id);
}

void scheduler_checks::copies_ended(const tracked_job& entry) {
  if (slots_are_kept_)
    slots_.ended(entry.work);
  if (entry.work.kind == job_kind::load)
    loads.ended(entry.work);
}

void scheduler_checks::reset(job_id next) {
  outcomes.reset(next);
  lives.reset();
}

} // namespace kvtide::core
