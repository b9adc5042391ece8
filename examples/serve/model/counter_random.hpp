// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

namespace serve {

/// Random numbers that follow from their place alone, not from the order in
/// which they are asked for: the same on every machine. The mixing function is
/// SplitMix64's (Steele, Lea and Flood, OOPSLA 2014).
class counter_random {
public:
  explicit constexpr counter_random(std::uint64_t seed) noexcept
    : key_(mix(seed)) {
    // nop
  }

  /// Number `index` of this stream.
  [[nodiscard]] constexpr std::uint64_t at(std::uint64_t index) const noexcept {
    return mix(key_ + index);
  }

  /// Uniform in [-1, 1), in steps that a float holds exactly.
  [[nodiscard]] constexpr float uniform(std::uint64_t index) const noexcept {
    const auto bits = static_cast<std::int32_t>(at(index) >> 40U); // 24 bits
    return static_cast<float>(bits - (1 << 23)) / static_cast<float>(1 << 23);
  }

private:
  static constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
  }

  std::uint64_t key_;
};

} // namespace serve
