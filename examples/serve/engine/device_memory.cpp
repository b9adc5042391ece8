// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/engine/device_memory.hpp"

namespace serve {

device_memory::device_memory(const kv_layout& layout, std::uint32_t blocks)
  : layout_(layout), blocks_(blocks),
    values_((std::size_t{blocks} + 1) * layout.block()) {
  // nop
}

kvtide::kv_memory device_memory::describe(const std::string& fingerprint) {
  auto res = kvtide::kv_memory{};
  auto& tensor = res.tensors.emplace_back();
  tensor.base = values_.data();
  tensor.bytes = values_.size() * sizeof(float);
  tensor.blocks = blocks_ + 1;
  tensor.block_stride = layout_.block() * sizeof(float);
  tensor.page_bytes = tensor.block_stride;
  // Keys and values of a layer lie behind each other: one piece for both.
  for (auto layer = std::size_t{0}; layer < model_shape::layers; ++layer) {
    auto& piece = res.references.emplace_back();
    piece.group = static_cast<kvtide::group_id>(layout_.shape.group_of(layer));
    piece.layer = static_cast<std::uint32_t>(layer);
    piece.offset = layout_.keys_of(layer) * sizeof(float);
    piece.bytes = 2 * layout_.plane() * sizeof(float);
  }
  res.model_fingerprint = fingerprint;
  return res;
}

} // namespace serve
