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
    log_.breach(order_rule::s9, "a job had a second outcome",
                "job " + std::to_string(id));
  else
    job->settled = true;
}

void outcome_check::took_effect(job_id id, bool ok) {
  const auto* job = jobs_.find(id);
  const auto done = job != nullptr ? job->done : 0;
  if (ok && done != all_)
    log_.breach(order_rule::s9, "a job was published that some rank did not do",
                "job " + std::to_string(id) + ", done by "
                  + std::to_string(std::popcount(done)) + " of "
                  + std::to_string(ranks_) + " ranks");
  if (id < oldest_)
    log_.breach(order_rule::s11, "a job from before a reset took effect",
                "job " + std::to_string(id) + "; the first one since is "
                  + std::to_string(oldest_));
}

} // namespace kvtide::core
