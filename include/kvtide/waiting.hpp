// SPDX-License-Identifier: Apache-2.0

/// @file
/// What all calls that wait have in common. Programs need none of it.

#pragma once

#include "kvtide/options.hpp"

#include <algorithm>
#include <chrono>

namespace kvtide {

/// What a call that is told to wait for `span` waits for.
[[nodiscard]] inline std::chrono::milliseconds
bounded_wait(std::chrono::milliseconds span) {
  using std::chrono::milliseconds;
  return std::clamp<milliseconds>(span, milliseconds{0}, longest_wait);
}

/// When a wait ends. Asked again after each wake-up, it never gets longer.
class wait_deadline {
public:
  using clock = std::chrono::steady_clock;

  explicit wait_deadline(std::chrono::milliseconds span)
    : moment_(clock::now() + bounded_wait(span)) {
    // nop
  }

  /// Rounded up, so that nobody is back too early; not below zero.
  [[nodiscard]] std::chrono::milliseconds left() const {
    using std::chrono::milliseconds;
    return std::max(std::chrono::ceil<milliseconds>(moment_ - clock::now()),
                    milliseconds{0});
  }

private:
  clock::time_point moment_;
};

/// Friend of `runtime` and `rank`: looks at what has arrived without being in a
/// call, so that other threads may make calls during a wait.
struct wait_access {
  template <class Side>
  static auto poll(Side& side) {
    return side.poll_in_wait();
  }
};

/// Takes what has arrived and looks at it, until a look finds something or the
/// time is over.
/// @param take gets the events; called before each look
/// @param look answers something that is false for nothing
/// @returns what was found, or an empty answer
template <class Side, class Take, class Look>
auto look_until(const Side& side, std::chrono::milliseconds timeout, Take take,
                Look look) -> decltype(look()) {
  const auto deadline = wait_deadline{timeout};
  for (;;) {
    take();
    if (auto found = look())
      return found;
    const auto left = deadline.left();
    if (left.count() == 0 || !side.wait(left))
      return {};
  }
}

} // namespace kvtide
