// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/replay/engine.hpp"

#include <chrono>
#include <cstddef>

namespace kvtide::replay {

/// One line on the terminal's stderr that is drawn over and over.
class progress_bar {
public:
  /// @param shown False draws nothing.
  explicit progress_bar(bool shown) : shown_(shown) {
    // nop
  }

  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  /// Removes the line.
  ~progress_bar();

  /// Draws ten times per second at most.
  void update(const progress& at);

private:
  using wall_clock = std::chrono::steady_clock;

  bool shown_;
  bool drawn_ = false;
  wall_clock::time_point start_ = wall_clock::now();
  wall_clock::time_point next_ = start_;
};

} // namespace kvtide::replay
