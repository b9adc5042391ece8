// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/job_watch.hpp"

#include "examples/replay/mix.hpp"

#include <algorithm>
#include <cstring>

namespace kvtide::replay {

namespace {

// The model's own hashes have eight bytes.
std::uint64_t to_number(const chunk_key& key) {
  auto res = std::uint64_t{0};
  std::memcpy(&res, key.hash.data(), std::min(key.hash.size(), sizeof(res)));
  return mix(res, key.group);
}

std::uint64_t copied_blocks(const job& what) {
  auto res = std::uint64_t{0};
  for (const auto& row : what.rows)
    for (const auto block : row.blocks)
      res += block != no_block ? 1 : 0;
  return res;
}

} // namespace

void job_watch::planned(const step_plan& plan) {
  const auto in_flight = jobs_.size();
  for (const auto& load : plan.loads) {
    counts_.loaded_bytes += copied_blocks(load) * block_bytes_;
    counts_.loads_overlapping_stores += stores_ > 0 ? 1 : 0;
    jobs_[load.id] = {job_kind::load, plan.step, 0};
    loads_[load.request] = load.id;
  }
  for (const auto& store : plan.stores) {
    counts_.stored_bytes += copied_blocks(store) * block_bytes_;
    const auto flushed
      = std::find(plan.flush.begin(), plan.flush.end(), store.id)
     != plan.flush.end();
    jobs_[store.id]
      = {job_kind::store, plan.step + (flushed ? 0 : 1), store.rows.size()};
    ++stores_;
    for (const auto& row : store.rows)
      storing_[to_number(row.key)] = store.id;
  }
  if (plan.flush.empty())
    return;
  ++counts_.flush_steps;
  counts_.flushed_jobs += plan.flush.size();
  counts_.in_flight_at_flush += in_flight;
  counts_.max_in_flight_at_flush
    = std::max<std::uint64_t>(counts_.max_in_flight_at_flush, in_flight);
}

void job_watch::load_ended(request_id request, step_id next) {
  const auto found = loads_.find(request);
  if (found == loads_.end())
    return;
  if (const auto job = jobs_.find(found->second); job != jobs_.end())
    ended(job, next);
  loads_.erase(found);
}

void job_watch::heard(const std::vector<cache_event>& events, step_id next) {
  for (const auto& event : events)
    for (const auto& chunk : event.stored) {
      const auto found = storing_.find(to_number(chunk.key));
      if (found == storing_.end())
        continue;
      const auto job = jobs_.find(found->second);
      storing_.erase(found);
      if (job != jobs_.end() && --job->second.chunks_left == 0)
        ended(job, next);
    }
}

void job_watch::ended(std::unordered_map<job_id, entry>::iterator which,
                      step_id next) {
  if (next >= which->second.submitted + 2)
    ++counts_.late_completions;
  if (which->second.kind == job_kind::store)
    --stores_;
  jobs_.erase(which);
}

} // namespace kvtide::replay
