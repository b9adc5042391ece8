// SPDX-License-Identifier: Apache-2.0

#include "core/reuse_watch.hpp"

#include <algorithm>

namespace kvtide::core {

void reuse_watch::add(block_id block, job_id job) {
  auto& jobs = jobs_[block];
  if (std::find(jobs.begin(), jobs.end(), job) == jobs.end())
    jobs.push_back(job);
}

void reuse_watch::remove(block_id block, job_id job) {
  const auto i = jobs_.find(block);
  if (i == jobs_.end())
    return;
  auto& jobs = i.value();
  jobs.erase(std::remove(jobs.begin(), jobs.end(), job), jobs.end());
  if (jobs.empty())
    jobs_.erase(i);
}

const std::vector<job_id>* reuse_watch::jobs(block_id block) const {
  const auto i = jobs_.find(block);
  return i != jobs_.end() ? &i->second : nullptr;
}

std::vector<block_id> reuse_watch::blocks() const {
  auto out = std::vector<block_id>{};
  out.reserve(jobs_.size());
  for (const auto& [block, jobs] : jobs_)
    out.push_back(block);
  std::sort(out.begin(), out.end());
  return out;
}

} // namespace kvtide::core
