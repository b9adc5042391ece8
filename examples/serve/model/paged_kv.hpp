// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "examples/serve/model/kv_layout.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace serve {

/// Per group, the blocks of a request in the order of its tokens.
using block_table = std::vector<std::vector<kvtide::block_id>>;

/// The KV of one request as the model sees it: blocks of a pool, found through
/// the request's block table. Owns nothing.
class paged_kv {
public:
  /// @param memory blocks of `layout.block()` floats, by their ids
  paged_kv(const kv_layout& layout, float* memory, const block_table& table)
    : layout_(layout), memory_(memory), table_(table) {
    // nop
  }

  [[nodiscard]] float* key(std::size_t layer, std::int32_t position) const {
    return row(layer, position) + layout_.keys_of(layer);
  }

  [[nodiscard]] float* value(std::size_t layer, std::int32_t position) const {
    return row(layer, position) + layout_.values_of(layer);
  }

  /// Calls `visit(keys, values, count)` for runs of tokens that lie behind each
  /// other, until all of `[first, last]` are visited, in ascending order.
  template <class Visit>
  void each_run(std::size_t layer, std::int32_t first, std::int32_t last,
                Visit visit) const {
    const auto size = static_cast<std::int32_t>(layout_.tokens_per_block);
    while (first <= last) {
      const auto count = std::min(size - first % size, last - first + 1);
      visit(key(layer, first), value(layer, first), count);
      first += count;
    }
  }

private:
  [[nodiscard]] float* row(std::size_t layer, std::int32_t position) const {
    const auto at = static_cast<std::size_t>(position);
    const auto block
      = table_[layout_.shape.group_of(layer)][at / layout_.tokens_per_block];
    return memory_ + block * layout_.block()
         + at % layout_.tokens_per_block * model_shape::kv_width;
  }

  const kv_layout& layout_;
  float* memory_;
  const block_table& table_;
};

} // namespace serve
