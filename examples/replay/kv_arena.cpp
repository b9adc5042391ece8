// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/kv_arena.hpp"

#include <sys/mman.h>

namespace kvtide::replay {

void kv_arena::unmap::operator()(std::byte* base) const noexcept {
  munmap(base, bytes);
}

result<kv_arena> kv_arena::create(const geometry& shape, rank_id rank) {
  auto res = kv_arena{shape, rank};
  const auto pieces = std::size_t{shape.layers} * geometry::planes;
  const auto tensors = shape.tensors();
  // A gap behind each packed block: not every byte of a stride is KV.
  constexpr std::size_t gap = 64;
  res.stride_ = shape.packed ? shape.block_bytes() + gap : shape.piece_bytes();
  res.tensor_bytes_ = res.stride_ * (std::size_t{shape.device_blocks} + 1);
  for (auto tensor = std::size_t{0}; tensor < tensors; ++tensor) {
    auto* base = mmap(nullptr, res.tensor_bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
      return error{ec::out_of_memory,
                   "no memory for " + std::to_string(res.tensor_bytes_)
                     + " bytes of KV; use fewer --device-blocks"};
    res.tensors_.emplace_back(static_cast<std::byte*>(base),
                              unmap{res.tensor_bytes_});
  }
  for (auto index = std::size_t{0}; index < pieces; ++index) {
    const auto tensor = shape.packed ? 0 : index;
    const auto offset = shape.packed ? index * shape.piece_bytes() : 0;
    res.places_.push_back({res.tensors_[tensor].get() + offset,
                           static_cast<std::uint32_t>(tensor), offset});
  }
  return res;
}

kv_memory kv_arena::describe(const std::string& fingerprint) const {
  auto res = kv_memory{};
  res.rank = rank_;
  res.model_fingerprint = fingerprint;
  const auto page = shape_.packed ? shape_.block_bytes() : stride_;
  for (const auto& tensor : tensors_)
    res.tensors.push_back({tensor.get(), tensor_bytes_, memory_kind::host,
                           shape_.device_blocks + 1, stride_, page});
  for (auto group = std::size_t{0}; group < shape_.groups(); ++group)
    for (auto index = std::size_t{0}; index < places_.size(); ++index)
      res.references.push_back(
        {static_cast<group_id>(group),
         static_cast<std::uint32_t>(index / geometry::planes),
         places_[index].tensor, places_[index].offset, shape_.piece_bytes()});
  return res;
}

} // namespace kvtide::replay
