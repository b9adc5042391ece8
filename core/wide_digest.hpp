// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/key.hpp"

#include "core/xxh3.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace kvtide::core {

/// Stands for a key where keys are too long: wide enough that two keys of one
/// pool never have the same one. Equal on every machine and in every version,
/// because a host pool that outlives its process is compared by it.
struct wide_digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const wide_digest& x, const wide_digest& y) noexcept {
    return x.low == y.low && x.high == y.high;
  }

  friend bool operator!=(const wide_digest& x, const wide_digest& y) noexcept {
    return !(x == y);
  }
};

[[nodiscard]] inline wide_digest wide_digest_of(const chunk_key& key) noexcept {
  auto bytes = std::array<std::uint8_t, prefix_hash::max_bytes + 12>{};
  auto size = std::size_t{0};
  for (; size < key.hash.size(); ++size)
    bytes[size] = key.hash.data()[size];
  const auto append = [&](std::uint64_t value, int count) {
    for (auto i = 0; i < count; ++i)
      bytes[size++] = static_cast<std::uint8_t>(value >> (8 * i));
  };
  append(key.group, 4);
  append(key.model, 8);
  const auto digest = XXH3_128bits(bytes.data(), size);
  return {digest.low64, digest.high64};
}

} // namespace kvtide::core
