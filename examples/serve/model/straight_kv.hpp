// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/model/model_shape.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace serve {

/// The KV of one request without blocks and tables: one array per layer. What
/// paging must not be told apart from.
class straight_kv {
public:
  explicit straight_kv(std::int32_t max_tokens) {
    for (auto& one : layers_)
      one.resize(2 * static_cast<std::size_t>(max_tokens)
                 * model_shape::kv_width);
  }

  [[nodiscard]] float* key(std::size_t layer, std::int32_t position) {
    return layers_[layer].data()
         + static_cast<std::size_t>(position) * model_shape::kv_width;
  }

  [[nodiscard]] float* value(std::size_t layer, std::int32_t position) {
    return key(layer, position) + layers_[layer].size() / 2;
  }

  /// As `paged_kv::each_run`.
  template <class Visit>
  void each_run(std::size_t layer, std::int32_t first, std::int32_t last,
                Visit visit) {
    visit(key(layer, first), value(layer, first), last - first + 1);
  }

private:
  std::array<std::vector<float>, model_shape::layers> layers_;
};

} // namespace serve
