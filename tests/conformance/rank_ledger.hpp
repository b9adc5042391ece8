// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include "tests/conformance/driver_rank.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace kvtide::conformance {

/// What one rank's device was given, against what the scheduler planned: each
/// job once, flushed ones before they are waited for (S4), stores one step
/// later or when idle (S3, S13), loads behind the flush (S5), everything behind
/// the compute enqueued last (S6), and the same jobs as in the plan (S10).
class rank_ledger {
public:
  explicit rank_ledger(rank_id rank) : rank_(rank) {
    // nop
  }

  /// Takes what the device was told since the last call.
  void take(const std::vector<rank_log::device_order>& orders);

  /// To be called when `step_ready` of the step was due.
  void check_step(const step_plan& plan);

  /// Compute of the step is enqueued; copies start behind `events`.
  void end_step(compute_events events) {
    events_ = std::move(events);
  }

  [[nodiscard]] bool handed_over(job_id id) const {
    return jobs_.count(id) > 0;
  }

  [[nodiscard]] bool reported(job_id id) const {
    return reported_.count(id) > 0;
  }

  void report(job_id id) {
    reported_.insert(id);
  }

  /// Sentences on what was wrong since the last call.
  [[nodiscard]] std::vector<std::string> take_complaints() {
    return std::exchange(complaints_, {});
  }

private:
  void note(const msg::submit_jobs& order);
  void note(const msg::make_fence& order);
  void check_jobs(const step_plan& plan, const std::set<job_id>& flush);
  void check_fence(const step_plan& plan, const std::set<job_id>& flush);
  void check_same(const job& planned);
  void complain(job_id id, const std::string& what);

  rank_id rank_;
  compute_events events_;
  /// Handed over so far.
  std::map<job_id, job> jobs_;
  std::set<job_id> reported_;
  /// Planned, and to be handed over when the next step begins at the latest.
  std::vector<job> deferred_;
  /// Since the last step: fences, ids in them that had not been handed over,
  /// and what each load was told to wait for.
  std::vector<msg::make_fence> fences_;
  std::set<job_id> waited_too_early_;
  std::map<job_id, std::vector<job_id>> loads_after_;
  std::vector<std::string> complaints_;
};

} // namespace kvtide::conformance
