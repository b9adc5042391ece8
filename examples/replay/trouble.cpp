// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/trouble.hpp"

#include <algorithm>

namespace kvtide::replay {

void trouble::consider(const sequence& seq) {
  auto chance = dice{mix(seed_, seq.id), 0x61626f7274u};
  if (!chance.chance(rate_))
    return;
  auto fate = doom{};
  fate.where = static_cast<phase>(chance.roll(live_phases));
  fate.when = chance.roll(2) == 0 ? moment::before_plan : moment::after_issue;
  if (fate.where == phase::loading && chance.roll(3) == 0)
    fate.when = moment::after_allocation;
  // A queued request is looked up in the very next plan.
  if (fate.where == phase::queued)
    fate.when = moment::before_plan;
  else if (fate.when == moment::after_allocation)
    fate.patience = 0;
  else if (fate.where == phase::decode)
    fate.patience = chance.roll(static_cast<std::uint64_t>(seq.output));
  else
    fate.patience = chance.roll(3);
  fate.last_resort = static_cast<token_count>(
    1 + chance.roll(static_cast<std::uint64_t>(seq.output)));
  order_.push_back(seq.id);
  dooms_.emplace(seq.id, fate);
}

bool trouble::strikes(const sequence& seq, moment when) {
  const auto found = dooms_.find(seq.id);
  if (found == dooms_.end())
    return false;
  auto& fate = found->second;
  if (when == fate.when && seq.where() == fate.where && fate.patience-- == 0)
    return true;
  return when == moment::before_plan && seq.where() == phase::decode
      && seq.known - seq.prompt >= fate.last_resort;
}

std::vector<request_id> trouble::doomed() const {
  return order_;
}

void trouble::forget(request_id request) {
  if (dooms_.erase(request) > 0)
    order_.erase(std::find(order_.begin(), order_.end(), request));
}

} // namespace kvtide::replay
