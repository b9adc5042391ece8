// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "tests/conformance/scenario.hpp"

#include <cstddef>
#include <string>

namespace kvtide::conformance {

/// Reads the lines of a file of level "host_pool". Every member throws
/// `unreadable`.
class pool_reader {
public:
  /// @param config the first line, whose common fields are read already
  explicit pool_reader(fields& config);

  void read(fields& line, const std::string& op, std::size_t number);

  [[nodiscard]] pool_scenario take() {
    return std::move(result_);
  }

private:
  std::vector<chunk_key> keys(fields& line);
  json want(fields& expect, const std::string& op) const;
  json want_state(fields& expect) const;

  pool_scenario result_;
};

} // namespace kvtide::conformance
