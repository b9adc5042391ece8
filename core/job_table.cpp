// SPDX-License-Identifier: Apache-2.0

#include "core/job_table.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace kvtide::core {

std::vector<slot_id> tracked_job::slots() const {
  auto out = std::vector<slot_id>{};
  out.reserve(work.rows.size());
  for (const auto& row : work.rows)
    out.push_back(row.slot);
  return out;
}

std::vector<block_id> tracked_job::blocks() const {
  auto out = std::vector<block_id>{};
  for (const auto& row : work.rows)
    std::copy_if(row.blocks.begin(), row.blocks.end(), std::back_inserter(out),
                 [](block_id block) { return block != no_block; });
  return out;
}

tracked_job& job_table::add(job work) {
  const auto id = next_id_++;
  work.id = id;
  auto& entry = jobs_[id];
  running_ += 1;
  running_stores_ += work.kind == job_kind::store;
  entry.work = std::move(work);
  entry.silent = ~std::uint64_t{0} >> (64 - ranks_);
  return entry;
}

tracked_job* job_table::find(job_id id) {
  const auto i = jobs_.find(id);
  return i != jobs_.end() ? &i->second : nullptr;
}

void job_table::erase(job_id id) {
  assert(jobs_.count(id) > 0 && jobs_[id].settled);
  jobs_.erase(id);
}

job_table::effect job_table::report(job_id id, rank_id rank, job_status status,
                                    std::uint32_t first_failed_row) {
  auto* entry = find(id);
  if (entry == nullptr || rank >= ranks_)
    return effect::ignored;
  const auto bit = std::uint64_t{1} << rank;
  if (status == job_status::drained) {
    if (!entry->is_late(rank))
      return effect::ignored;
    entry->late &= ~bit;
    return entry->settled && entry->late == 0 ? effect::drained
                                              : effect::counted;
  }
  if (!entry->is_silent(rank))
    return effect::ignored;
  // A row that the job does not have leaves it unknown which ones are complete.
  if (status != job_status::done)
    entry->first_failed_row = std::min(
      entry->first_failed_row,
      first_failed_row < entry->work.rows.size() ? first_failed_row : 0);
  entry->silent &= ~bit;
  if (status == job_status::late)
    entry->late |= bit;
  if (entry->silent != 0)
    return effect::counted;
  entry->settled = true;
  --running_;
  running_stores_ -= entry->work.kind == job_kind::store;
  return effect::settled;
}

job_id job_table::settled_below() const noexcept {
  // What is settled and still here waits for late copies, of which few exist.
  for (const auto& [id, entry] : jobs_)
    if (!entry.settled)
      return id;
  return next_id_;
}

void job_table::forget_all() {
  for (auto& [id, entry] : jobs_)
    entry.stale = true;
}

} // namespace kvtide::core
