// SPDX-License-Identifier: Apache-2.0

#include "core/device_check.hpp"

#include <algorithm>
#include <string>

namespace kvtide::core {

void device_check::submitted(const std::vector<job>& jobs,
                             std::optional<step_id> computed) {
  for (const auto& x : jobs)
    highest_ = std::max(highest_, std::optional{x.id});
  if (computed < computed_) // None is less than any step.
    log_.breach(order_rule::s6, "copies wait for compute of an earlier step",
                "those of job "
                  + (jobs.empty() ? "none" : std::to_string(jobs.front().id))
                  + " for step " + std::to_string(computed.value_or(0))
                  + " after step " + std::to_string(*computed_));
  computed_ = std::max(computed_, computed);
}

void device_check::fenced(step_id step, const std::vector<job_id>& jobs,
                          std::optional<job_id> skipped) {
  const auto known = std::max(highest_, skipped);
  for (const auto id : jobs)
    if (known < id)
      log_.breach(order_rule::s4,
                  "a job was waited for before it was handed "
                  "over",
                  "job " + std::to_string(id) + " in the fence of step "
                    + std::to_string(step));
  // Step n is fenced once step n - 1 has ended; only the first has none.
  if (computed_ && step > 0)
    computed_ = std::max(*computed_, step - 1);
}

} // namespace kvtide::core
