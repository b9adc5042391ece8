// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <utility>
#include <variant>

namespace kvtide::test {

/// Only a broken runtime is waited for so long.
inline constexpr std::chrono::seconds patience{20};

/// What a side has heard and nobody has asked for yet.
template <class Event>
class ear {
public:
  /// Waits for an event of one kind, and drops those before it.
  template <class Wanted, class Side>
  std::optional<Wanted> await(Side& side) {
    for (;;) {
      while (!heard_.empty()) {
        auto event = std::move(heard_.front());
        heard_.pop_front();
        if (auto* found = std::get_if<Wanted>(&event))
          return std::move(*found);
      }
      if (!side.wait(patience))
        return std::nullopt;
      for (auto& event : side.poll())
        heard_.push_back(std::move(event));
    }
  }

private:
  std::deque<Event> heard_;
};

} // namespace kvtide::test
