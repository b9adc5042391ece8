// SPDX-License-Identifier: Apache-2.0

#include "core/transfer_ledger.hpp"

#include <algorithm>

namespace kvtide::core {

void transfer_ledger::add(job_id id, nanoseconds_t now) {
  if (late_.emplace(id, false).second)
    due_.emplace_back(later_by(now, deadline_), id);
}

transfer_ledger::ending transfer_ledger::end(job_id id) {
  const auto found = late_.find(id);
  if (found == late_.end())
    return ending::unknown;
  const auto late = found->second;
  late_.erase(found);
  trim();
  return late ? ending::late : ending::in_time;
}

std::vector<job_id> transfer_ledger::take_late(nanoseconds_t now) {
  std::vector<job_id> result;
  while (!due_.empty() && due_.front().first <= now
         && due_.front().first != never) {
    const auto found = late_.find(due_.front().second);
    due_.pop_front();
    if (found == late_.end() || found->second)
      continue;
    found.value() = true;
    result.push_back(found->first);
  }
  trim();
  return result;
}

std::vector<job_id> transfer_ledger::ids() const {
  std::vector<job_id> result;
  result.reserve(late_.size());
  for (const auto& [id, late] : late_)
    result.push_back(id);
  std::sort(result.begin(), result.end());
  return result;
}

void transfer_ledger::make_late(job_id id) {
  if (const auto found = late_.find(id); found != late_.end())
    found.value() = true;
  trim();
}

void transfer_ledger::make_all_late() {
  for (auto i = late_.begin(); i != late_.end(); ++i)
    i.value() = true;
  due_.clear();
}

nanoseconds_t transfer_ledger::next_due() const {
  return due_.empty() ? never : due_.front().first;
}

std::vector<std::pair<job_id, transfer_ledger::ending>>
transfer_ledger::clear() {
  std::vector<std::pair<job_id, ending>> result;
  for (const auto& [id, late] : late_)
    result.emplace_back(id, late ? ending::late : ending::in_time);
  std::sort(result.begin(), result.end());
  late_.clear();
  due_.clear();
  return result;
}

void transfer_ledger::trim() {
  const auto is_over = [this](job_id id) {
    const auto found = late_.find(id);
    return found == late_.end() || found->second;
  };
  while (!due_.empty() && is_over(due_.front().second))
    due_.pop_front();
}

} // namespace kvtide::core
