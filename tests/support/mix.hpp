// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

namespace kvtide::test {

/// A number that stands for two others. Never zero.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x,
                                          std::uint64_t y) noexcept {
  x = (x ^ (y + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 29)) * 0x94d049bb133111eb;
  return (x ^ (x >> 32)) | 1;
}

} // namespace kvtide::test
