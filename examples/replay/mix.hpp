// SPDX-License-Identifier: Apache-2.0

/// @file
/// Hashing and chance, both the same on every machine and in every run.

#pragma once

#include <cstdint>

namespace kvtide::replay {

/// Spreads every bit of `x` over the whole result (the finalizer of
/// splitmix64).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Joins two values; the order matters.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x,
                                          std::uint64_t y) noexcept {
  return mix(mix(x) ^ y);
}

/// A seeded sequence of random numbers, one for each purpose, so that a new use
/// of chance does not shift the others.
class dice {
public:
  dice(std::uint64_t seed, std::uint64_t purpose) : state_(mix(seed, purpose)) {
    // nop
  }

  [[nodiscard]] std::uint64_t next() noexcept {
    return mix(state_++);
  }

  /// A number from 0 to `sides - 1`.
  /// @pre `sides > 0`
  [[nodiscard]] std::uint64_t roll(std::uint64_t sides) noexcept {
    return next() % sides;
  }

  /// True with this probability.
  [[nodiscard]] bool chance(double probability) noexcept {
    return static_cast<double>(next() >> 11) * 0x1p-53 < probability;
  }

private:
  std::uint64_t state_;
};

} // namespace kvtide::replay
