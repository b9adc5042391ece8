// SPDX-License-Identifier: Apache-2.0

/// @file
/// Which messages were handled by whom. Actors are named as in the design:
/// "cache_manager", not "cache-manager".

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <tuple>

namespace kvtide::conformance {

/// One handler of one kind of actor.
struct handler_name {
  std::string actor;
  std::string message;

  friend bool operator<(const handler_name& x, const handler_name& y) {
    return std::tie(x.actor, x.message) < std::tie(y.actor, y.message);
  }

  friend bool operator==(const handler_name& x, const handler_name& y) {
    return x.actor == y.actor && x.message == y.message;
  }
};

/// Messages handled, by handler.
using traffic = std::map<handler_name, std::size_t>;

/// Adds the counts of `more`.
inline void add(traffic& sum, const traffic& more) {
  for (const auto& [name, count] : more)
    sum[name] += count;
}

/// Messages that actors of one kind have handled.
[[nodiscard]] inline std::size_t handled_by(const traffic& all,
                                            const std::string& actor) {
  auto sum = std::size_t{0};
  for (const auto& [name, count] : all)
    if (name.actor == actor)
      sum += count;
  return sum;
}

} // namespace kvtide::conformance
