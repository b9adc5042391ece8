// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <cstddef>

namespace kvtide::core {

/// How many units of `unit` tokens it takes to hold `tokens`.
/// @pre `tokens >= 0`, `unit > 0`
[[nodiscard]] constexpr std::size_t units_for(token_count tokens,
                                              token_count unit) noexcept {
  return static_cast<std::size_t>((tokens + unit - 1) / unit);
}

} // namespace kvtide::core
