// SPDX-License-Identifier: Apache-2.0

#include "net/refusal_log.hpp"

#include "actors/log.hpp"

#include <algorithm>

namespace kvtide::net {

void refusal_log::note(const std::string& who, const std::string& why,
                       clock::time_point now) {
  const auto guard = std::lock_guard{mutex_};
  count_ += 1;
  if (!take(now)) {
    silent_ += 1;
    return;
  }
  const auto others = silent_ == 0
                      ? std::string{}
                      : " (and " + std::to_string(silent_) + " more before)";
  silent_ = 0;
  log().warn("network: turned {} away: {}{}", who, why, others);
}

std::uint64_t refusal_log::count() const {
  const auto guard = std::lock_guard{mutex_};
  return count_;
}

bool refusal_log::take(clock::time_point now) {
  const auto fresh = (now - filled_) / refill;
  if (fresh > 0) {
    filled_ = now;
    left_ = static_cast<std::uint32_t>(
      std::min<std::int64_t>(burst, left_ + fresh));
  }
  if (left_ == 0)
    return false;
  left_ -= 1;
  return true;
}

} // namespace kvtide::net
