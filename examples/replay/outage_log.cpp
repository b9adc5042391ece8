// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/outage_log.hpp"

namespace kvtide::replay {

namespace {

outage::moment now() {
  return std::chrono::system_clock::now();
}

} // namespace

void outage_log::process_lost(rank_id rank) {
  auto& what = open(rank);
  what.process_away = true;
  all_[what.index].process = true;
}

void outage_log::process_back(rank_id rank, bool same_life) {
  auto& what = open(rank);
  what.process_away = false;
  all_[what.index].same_life &= same_life;
  close_if_over(rank);
}

void outage_log::link_lost(rank_id rank) {
  auto& what = open(rank);
  what.link_away = true;
  all_[what.index].link = true;
}

void outage_log::link_back(rank_id rank, bool same_life) {
  const auto found = open_.find(rank);
  if (found == open_.end())
    return; // It joined for the first time.
  found->second.link_away = false;
  all_[found->second.index].same_life &= same_life;
  close_if_over(rank);
}

void outage_log::hit() {
  if (!whole())
    return;
  for (; without_hit_ < all_.size(); ++without_hit_)
    all_[without_hit_].hit = now();
}

outage_log::state& outage_log::open(rank_id rank) {
  const auto [found, added] = open_.try_emplace(rank);
  if (added) {
    found->second.index = all_.size();
    auto what = outage{};
    what.rank = rank;
    what.lost = now();
    all_.push_back(what);
  }
  return found->second;
}

void outage_log::close_if_over(rank_id rank) {
  const auto& what = open_.at(rank);
  if (what.process_away || what.link_away)
    return;
  all_[what.index].back = now();
  open_.erase(rank);
}

} // namespace kvtide::replay
