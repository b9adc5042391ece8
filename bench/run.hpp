// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <benchmark/benchmark.h>

namespace kvtide::bench {

/// Runs what was registered.
/// @returns what `main` returns
inline int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

} // namespace kvtide::bench
