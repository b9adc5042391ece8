// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/model/rotary.hpp"

#include <cmath>

namespace serve {

rotary::rotary(std::int32_t positions) {
  constexpr auto base = 10'000.0;
  table_.reserve(static_cast<std::size_t>(positions) * pairs * 2);
  for (auto position = 0; position < positions; ++position)
    for (auto pair = std::size_t{0}; pair < pairs; ++pair) {
      const auto exponent = -static_cast<double>(pair) / pairs;
      const auto angle = position * std::pow(base, exponent);
      table_.push_back(static_cast<float>(std::cos(angle)));
      table_.push_back(static_cast<float>(std::sin(angle)));
    }
}

void rotary::turn(float* head, std::int32_t position) const {
  const auto* entry
    = table_.data() + static_cast<std::size_t>(position) * pairs * 2;
  for (auto pair = std::size_t{0}; pair < pairs; ++pair) {
    const auto x = head[pair];
    const auto y = head[pair + pairs];
    head[pair] = x * entry[2 * pair] - y * entry[2 * pair + 1];
    head[pair + pairs] = y * entry[2 * pair] + x * entry[2 * pair + 1];
  }
}

} // namespace serve
