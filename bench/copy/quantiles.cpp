// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/quantiles.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace kvtide::bench {

quantiles quantiles_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  const auto at = [&](double part) {
    const auto rank = std::max(1.0, std::ceil(part * count));
    return values[static_cast<std::size_t>(rank) - 1];
  };
  return {at(0.1), at(0.5), at(0.9), at(0.99)};
}

} // namespace kvtide::bench
