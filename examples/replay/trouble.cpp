// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/trouble.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::replay {

namespace {

constexpr phase usual_phases[] = {phase::queued, phase::prefill, phase::decode};

// Phases that few requests meet, so that their share has to be larger.
constexpr struct {
  phase where;
  double factor;
} rare_phases[]
  = {{phase::deferred, 10}, {phase::loading, 3}, {phase::preempted, 10}};

moment roll_moment(dice& chance, phase where) {
  // A queued request is looked up in the very next plan.
  if (where == phase::queued)
    return moment::before_plan;
  if (where == phase::loading && chance.roll(3) == 0)
    return moment::after_allocation;
  return chance.roll(2) == 0 ? moment::before_plan : moment::after_issue;
}

} // namespace

void trouble::consider(const sequence& seq) {
  auto chance = dice{mix(seed_, seq.id), 0x61626f7274u};
  const auto output = static_cast<std::uint64_t>(seq.output);
  auto what = fate{};
  if (chance.chance(rate_)) {
    const auto where = usual_phases[chance.roll(std::size(usual_phases))];
    const auto patience = where == phase::decode  ? output
                        : where == phase::prefill ? 3
                                                  : 1;
    what.dooms.push_back(
      {where, roll_moment(chance, where), chance.roll(patience)});
    what.last_resort = static_cast<token_count>(1 + chance.roll(output));
  }
  for (const auto& [where, factor] : rare_phases)
    if (chance.chance(rate_ * factor)) {
      const auto when = roll_moment(chance, where);
      what.dooms.push_back(
        {where, when, when == moment::after_allocation ? 0 : chance.roll(2)});
    }
  if (what.dooms.empty())
    return;
  order_.push_back(seq.id);
  fates_.emplace(seq.id, std::move(what));
}

bool trouble::strikes(const sequence& seq, moment when) {
  const auto found = fates_.find(seq.id);
  if (found == fates_.end())
    return false;
  auto& what = found->second;
  for (auto& end : what.dooms)
    if (when == end.when && seq.where() == end.where && end.patience-- == 0)
      return true;
  return when == moment::before_plan && what.last_resort > 0
      && seq.where() == phase::decode
      && seq.known - seq.prompt >= what.last_resort;
}

std::vector<request_id> trouble::doomed() const {
  return order_;
}

void trouble::forget(request_id request) {
  if (fates_.erase(request) > 0)
    order_.erase(std::find(order_.begin(), order_.end(), request));
}

} // namespace kvtide::replay
