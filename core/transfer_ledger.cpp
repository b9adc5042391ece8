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
    if (found == late_.end())
      continue;
    found.value() = true;
    result.push_back(found->first);
  }
  trim();
  return result;
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
  while (!due_.empty() && late_.count(due_.front().second) == 0)
    due_.pop_front();
}

} // namespace kvtide::core
