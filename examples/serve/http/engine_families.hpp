// SPDX-License-Identifier: Apache-2.0

/// @file
/// The engine's counters in the words of Prometheus.

#pragma once

#include "examples/serve/engine/engine_stats.hpp"

#include <prometheus/metric_family.h>
#include <vector>

namespace serve {

/// One family per counter or group of counters, each with its help text. Their
/// values are absolute, so they are made anew for each scrape.
[[nodiscard]] std::vector<prometheus::MetricFamily>
engine_families(const engine_stats& stats);

} // namespace serve
