// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/model/model_shape.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace serve {

/// A matrix in rows of one input each, so that a product adds up row by row.
struct matrix {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  /// `inputs * outputs` values.
  std::vector<float> values;
};

/// What one layer has learned, or would have, had anybody trained it.
struct layer_weights {
  matrix query;
  matrix key;
  matrix value;
  matrix attention_out;
  matrix gate;
  matrix up;
  matrix down;
};

/// All weights of a model. Drawn, not trained: answers make no sense, but they
/// depend on every byte of the prompt, which is what this example is after.
struct weights {
  /// Equal seeds give equal weights, on every machine.
  explicit weights(std::uint64_t seed);

  /// One row per token.
  matrix embedding;
  std::array<layer_weights, model_shape::layers> layers;
  matrix unembedding;
};

} // namespace serve
