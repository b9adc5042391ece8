// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/model/model_shape.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace serve {

/// Turns queries and keys by angles that grow with the position, so that their
/// product depends on how far apart they are (Su et al., 2021).
class rotary {
public:
  /// @param positions how many to prepare for
  explicit rotary(std::int32_t positions);

  /// Turns one head, in place.
  void turn(float* head, std::int32_t position) const;

private:
  static constexpr std::size_t pairs = model_shape::head_width / 2;

  /// Cosine and sine of each pair of each position.
  std::vector<float> table_;
};

} // namespace serve
