// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/key.hpp"

#include "core/linked_keys.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>

namespace kvtide::core {

/// Counts how often keys were looked up (C10). Bounded: the key that was
/// not looked up for longest is forgotten first.
class use_counter {
public:
  static constexpr std::size_t max_keys = 64'000;

  void add(const chunk_key& key) {
    auto& number = uses_.push_newest(key);
    if (number < std::numeric_limits<std::uint32_t>::max())
      ++number;
    uses_.shorten(max_keys);
  }

  /// Zero for a key that was never looked up, or was forgotten.
  [[nodiscard]] std::uint32_t count(const chunk_key& key) const {
    return uses_.number(key);
  }

private:
  linked_keys uses_;
};

} // namespace kvtide::core
