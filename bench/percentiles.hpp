// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace kvtide::bench {

/// @pre `values` is not empty
inline double percentile(std::vector<double>& values, double part) {
  const auto place = static_cast<std::ptrdiff_t>(
    part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

/// Adds `name` with `_p50` and `_p99` to what the program prints.
inline void report(benchmark::State& state, const std::string& name,
                   std::vector<double>& values) {
  state.counters[name + "_p50"] = percentile(values, 0.5);
  state.counters[name + "_p99"] = percentile(values, 0.99);
}

} // namespace kvtide::bench
