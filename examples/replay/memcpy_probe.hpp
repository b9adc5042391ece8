// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/replay/geometry.hpp"

#include <cstddef>
#include <vector>

namespace kvtide::replay {

/// Finds out what memcpy reaches on one thread, to compare the runtime's copies
/// with. It copies what store jobs copy, into places in a row: the blocks of a
/// chunk lie side by side in each tensor, and chunks lie scattered. Memory for
/// a few dozen MiB is taken during `run` only.
class memcpy_probe {
public:
  /// What does not fit into the memory of a run is cut.
  /// @param blocks_per_chunk At least 1.
  memcpy_probe(const geometry& shape, std::size_t blocks_per_chunk);

  /// Copies for some tens of milliseconds. Run it before and after what is to
  /// be compared: a machine that others use is not the same all the time.
  void run();

  /// The median of all rounds of all runs; zero before the first run.
  [[nodiscard]] double bytes_per_second() const;

private:
  std::size_t fragment_bytes_;
  std::size_t tensors_;
  std::size_t blocks_per_chunk_;
  std::size_t chunks_;
  std::vector<double> rounds_;
};

} // namespace kvtide::replay
