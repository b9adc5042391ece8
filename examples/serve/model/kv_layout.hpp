// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/model/model_shape.hpp"

#include <cstddef>
#include <cstdint>

namespace serve {

/// Where keys and values lie inside a block: for each layer of the block's
/// group the keys of all its tokens, then their values. Counted in floats.
struct kv_layout {
  model_shape shape;
  std::size_t tokens_per_block = 16;

  /// Keys, or values, of one layer.
  [[nodiscard]] constexpr std::size_t plane() const noexcept {
    return tokens_per_block * model_shape::kv_width;
  }

  /// Both groups of the sliding variant have the same number of layers, so that
  /// any block can serve either.
  [[nodiscard]] constexpr std::size_t block() const noexcept {
    return 2 * plane() * shape.layers_per_group();
  }

  [[nodiscard]] constexpr std::size_t
  keys_of(std::size_t layer) const noexcept {
    return 2 * plane() * shape.place_of(layer);
  }

  [[nodiscard]] constexpr std::size_t
  values_of(std::size_t layer) const noexcept {
    return keys_of(layer) + plane();
  }
};

} // namespace serve
