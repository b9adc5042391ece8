// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/rank_memory.hpp"

#include "tests/support/mix.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::explore {

namespace {

constexpr std::uint64_t token_bytes = sizeof(std::uint64_t);

} // namespace

rank_memory::rank_memory(std::shared_ptr<const core::layout> shape,
                         rank_id rank, std::uint32_t blocks)
  : shape_(std::move(shape)), rank_(rank), blocks_(blocks) {
  for (const auto& group : shape_->groups)
    block_tokens_ = std::max(block_tokens_, group.block_tokens);
  own_.resize(std::size_t{blocks_} * layers
              * static_cast<std::size_t>(block_tokens_));
  cells_ = own_.data();
}

void rank_memory::move_to(std::uint64_t* there) {
  std::copy_n(cells_, own_.size(), there);
  cells_ = there;
}

void rank_memory::spoil() {
  std::fill_n(cells_, own_.size(), std::uint64_t{0xdead});
}

kv_memory rank_memory::describe() {
  const auto plane = static_cast<std::uint64_t>(block_tokens_) * token_bytes;
  auto out = kv_memory{};
  out.rank = rank_;
  auto& tensor = out.tensors.emplace_back();
  tensor.base = cells_;
  tensor.bytes = bytes();
  tensor.blocks = blocks_;
  tensor.block_stride = plane * layers;
  tensor.page_bytes = tensor.block_stride;
  for (group_id g = 0; g < shape_->groups.size(); ++g)
    for (std::uint32_t layer = 0; layer < layers; ++layer)
      out.references.push_back(
        {g, layer, 0, layer * plane,
         static_cast<std::uint64_t>(shape_->groups[g].block_tokens)
           * token_bytes});
  return out;
}

std::uint64_t& rank_memory::cell(block_id block, std::uint32_t layer,
                                 token_count at) {
  const auto row = std::size_t{block} * layers + layer;
  return cells_[row * static_cast<std::size_t>(block_tokens_)
                + static_cast<std::size_t>(at)];
}

std::uint64_t rank_memory::value(std::uint64_t token, group_id group,
                                 std::uint32_t layer) const noexcept {
  return test::mix(token, (std::uint64_t{rank_} * 64 + group) * layers + layer);
}

const std::uint64_t& rank_memory::host_cell(const core::layout& shape,
                                            const std::byte* slot,
                                            group_id group, std::size_t block,
                                            std::uint32_t layer,
                                            token_count at) {
  const auto tokens
    = static_cast<std::size_t>(shape.groups[group].block_tokens);
  const auto index
    = (block * layers + layer) * tokens + static_cast<std::size_t>(at);
  return reinterpret_cast<const std::uint64_t*>(slot)[index];
}

} // namespace kvtide::explore
