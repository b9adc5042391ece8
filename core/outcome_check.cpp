// SPDX-License-Identifier: Apache-2.0

#include "core/outcome_check.hpp"

#include <bit>
#include <string>

namespace kvtide::core {

void outcome_check::started(job_id id) {
  jobs_.insert(id, {});
}

void outcome_check::rank_done(job_id id, rank_id rank) {
  if (auto* job = jobs_.find(id); job != nullptr)
    job->done |= std::uint64_t{1} << rank;
}

void outcome_check::settled(job_id id) {
  auto* job = jobs_.find(id);
  if (job == nullptr || job->settled)
    complain_of_second(id);
  else
    job->settled = true;
}

void outcome_check::took_effect(job_id id, bool ok) {
  const auto* job = jobs_.find(id);
  const auto done = job != nullptr ? job->done : 0;
  if (ok && done != all_)
    complain_of_missing(id, done);
  if (id < oldest_)
    complain_of_stale(id);
}

void outcome_check::complain_of_second(job_id id) {
  log_.breach(order_rule::s9, "a job had a second outcome",
              "job " + std::to_string(id));
}

void outcome_check::complain_of_missing(job_id id, std::uint64_t done) {
  log_.breach(order_rule::s9, "a job was published that some rank did not do",
              "job " + std::to_string(id) + ", done by "
                + std::to_string(std::popcount(done)) + " of "
                + std::to_string(ranks_) + " ranks");
}

void outcome_check::complain_of_stale(job_id id) {
  log_.breach(order_rule::s11, "a job from before a reset took effect",
              "job " + std::to_string(id) + "; the first one since is "
                + std::to_string(oldest_));
}

} // namespace kvtide::core
