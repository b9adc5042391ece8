// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "tests/conformance/scenario.hpp"

#include <cstddef>
#include <string>

namespace kvtide::conformance {

/// Reads the lines of a file of level "worker". Every member throws
/// `unreadable`.
class worker_reader {
public:
  /// @param config the first line, whose common fields are read already
  explicit worker_reader(fields& config);

  void read(fields& line, const std::string& op, std::size_t number);

  [[nodiscard]] worker_scenario take() {
    return std::move(result_);
  }

private:
  worker_scenario result_;
};

} // namespace kvtide::conformance
