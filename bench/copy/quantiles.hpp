// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

namespace kvtide::bench {

/// How a sample is spread: the smallest value that so many percent of all do
/// not exceed.
struct quantiles {
  double p10 = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
};

/// @pre `values` is not empty
[[nodiscard]] quantiles quantiles_of(std::vector<double> values);

} // namespace kvtide::bench
