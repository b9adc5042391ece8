// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

namespace kvtide {

/// Which of an actor's own `timer` messages are under way, so that few are
/// sent. A message that arrives before something is due is to be sent again.
class alarm {
public:
  /// Asks to be woken at `due`, or earlier.
  /// @returns how long to wait for a message that has to be sent now; none if
  ///          one is under way that comes early enough, or nothing is due
  [[nodiscard]] std::optional<std::chrono::nanoseconds> set(nanoseconds_t now,
                                                            nanoseconds_t due) {
    if (covers(now, due))
      return std::nullopt;
    const auto wait = wait_for(now, due);
    armed_.insert(armed_.begin(), now + wait);
    return std::chrono::nanoseconds{wait};
  }

  /// @returns whether a message is under way that comes at `due`, or early
  ///          enough to be sent again
  [[nodiscard]] bool covers(nanoseconds_t now, nanoseconds_t due) const {
    return due == never
        || (!armed_.empty() && armed_.front() <= now + wait_for(now, due));
  }

  /// A message has arrived.
  void rang() {
    if (!armed_.empty())
      armed_.erase(armed_.begin());
  }

private:
  static nanoseconds_t wait_for(nanoseconds_t now, nanoseconds_t due) {
    return std::clamp<nanoseconds_t>(due - now, 0, longest.count());
  }

  // A delayed message keeps its actor alive, so none is sent further ahead.
  static constexpr auto longest
    = std::chrono::nanoseconds{std::chrono::milliseconds{100}};

  /// When messages will arrive, ascending.
  std::vector<nanoseconds_t> armed_;
};

} // namespace kvtide
