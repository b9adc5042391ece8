// SPDX-License-Identifier: Apache-2.0

#include "core/replica_chooser.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::core {

replica_chooser::replica_chooser(double least_share)
  : least_share_(least_share) {
  // nop
}

const replica_holding*
replica_chooser::choose(const std::vector<replica_holding>& all,
                        const std::string& most, token_count prompt) {
  if (all.empty())
    return nullptr;
  meet(all);
  const auto first = std::find_if(all.begin(), all.end(), [&](const auto& one) {
    return one.replica == most;
  });
  const auto* out = first == all.end() ? &all.front() : &*first;
  const auto worth = least_share_ * static_cast<double>(prompt);
  if (static_cast<double>(out->tokens) < worth)
    for (const auto& one : all)
      if (given_[one.replica] < given_[out->replica])
        out = &one;
  given_[out->replica]
    += prompt - std::clamp(out->tokens, token_count{0}, prompt);
  return out;
}

void replica_chooser::meet(const std::vector<replica_holding>& all) {
  auto next = std::map<std::string, token_count>{};
  auto least = token_count{0};
  for (const auto& one : all)
    if (const auto known = given_.find(one.replica); known != given_.end()) {
      least = next.empty() ? known->second : std::min(least, known->second);
      next.insert(*known);
    }
  // One that comes late is not given everything at once.
  for (const auto& one : all)
    next.emplace(one.replica, least);
  given_ = std::move(next);
}

} // namespace kvtide::core
