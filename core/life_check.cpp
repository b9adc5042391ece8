// SPDX-License-Identifier: Apache-2.0

#include "core/life_check.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace kvtide::core {

void life_check::planned(request_id id) {
  const auto i = lives_.find(id);
  if (i == lives_.end() || std::exchange(i.value().planned, true))
    return;
  over_ += i->second.over();
}

void life_check::job_started(request_id id) {
  const auto i = lives_.find(id);
  if (i == lives_.end())
    return;
  over_ -= i->second.over();
  i.value().jobs += 1;
}

void life_check::job_settled(request_id id) {
  const auto i = lives_.find(id);
  if (i == lives_.end() || i->second.jobs == 0)
    return;
  i.value().jobs -= 1;
  over_ += i->second.over();
}

void life_check::dropped(request_id id) {
  const auto i = lives_.find(id);
  if (i == lives_.end())
    return;
  const auto ended = take(i);
  if (!ended.planned)
    log_.breach(order_rule::s2,
                "a request was dropped before its tail was "
                "planned",
                "request " + std::to_string(id));
  if (ended.jobs > 0)
    log_.breach(order_rule::s2,
                "a request was dropped before its last job "
                "had an outcome",
                "request " + std::to_string(id)
                  + ", jobs in flight: " + std::to_string(ended.jobs));
}

void life_check::reset() {
  over_ = 0;
  for (auto i = lives_.begin(); i != lives_.end(); ++i) {
    i.value().jobs = 0;
    over_ += i->second.over();
  }
}

void life_check::forgotten(request_id id) {
  if (const auto i = lives_.find(id); i != lives_.end())
    take(i);
}

life_check::life
life_check::take(tsl::robin_map<request_id, life>::iterator i) {
  const auto out = i->second;
  lives_.erase(i);
  over_ -= out.over();
  told_ = std::min(told_, over_);
  return out;
}

void life_check::complain_of_rest() {
  told_ = over_;
  log_.breach(order_rule::s2, "requests that are over were not dropped",
              std::to_string(over_) + " of them");
}

} // namespace kvtide::core
