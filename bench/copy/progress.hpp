// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace kvtide::bench {

/// Says on standard error how far something long is: on a terminal in one line
/// that is written over, else now and then in a line of its own.
class progress {
public:
  progress(std::string name, std::size_t steps);

  progress(const progress&) = delete;

  progress& operator=(const progress&) = delete;

  ~progress();

  /// Begins a step.
  void next(const std::string& what);

private:
  std::string name_;
  std::size_t steps_;
  std::size_t step_ = 0;
  bool terminal_;
  std::chrono::steady_clock::time_point told_;
};

} // namespace kvtide::bench
