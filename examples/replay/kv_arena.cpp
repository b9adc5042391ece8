// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/kv_arena.hpp"

#include <sys/mman.h>
#include <utility>

namespace kvtide::replay {

void kv_arena::unmap::operator()(std::byte* base) const noexcept {
  munmap(base, bytes);
}

kv_arena::kv_arena(const geometry& shape, rank_id rank)
  : shape_(shape), rank_(rank) {
  // A gap behind each packed block: not every byte of a stride is KV.
  constexpr std::size_t gap = 64;
  stride_ = shape.packed ? shape.block_bytes() + gap : shape.piece_bytes();
  tensor_bytes_ = stride_ * (std::size_t{shape.device_blocks} + 1);
}

result<kv_arena> kv_arena::create(const geometry& shape, rank_id rank) {
  auto res = kv_arena{shape, rank};
  for (auto tensor = std::size_t{0}; tensor < shape.tensors(); ++tensor) {
    auto* base = mmap(nullptr, res.tensor_bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
      return error{ec::out_of_memory,
                   "no memory for " + std::to_string(res.tensor_bytes_)
                     + " bytes of KV; use fewer --device-blocks"};
    res.mappings_.emplace_back(static_cast<std::byte*>(base),
                               unmap{res.tensor_bytes_});
    res.add_tensor(res.mappings_.back().get());
  }
  return res;
}

result<kv_arena> kv_arena::create_on_gpu(const geometry& shape, rank_id rank,
                                         int device) {
  auto res = kv_arena{shape, rank};
  res.device_ = device;
  for (auto tensor = std::size_t{0}; tensor < shape.tensors(); ++tensor) {
    auto made = gpu::device_memory::allocate(device, res.tensor_bytes_);
    if (!made)
      return made.failure();
    res.allocations_.push_back(std::move(made).value());
    res.kind_ = res.allocations_.back().kind();
    res.add_tensor(res.allocations_.back().data());
  }
  res.lane_ = std::make_unique<gpu_lane>(device);
  return res;
}

void kv_arena::add_tensor(std::byte* base) {
  const auto tensor = static_cast<std::uint32_t>(tensors_.size());
  tensors_.push_back(base);
  if (!shape_.packed) {
    places_.push_back({base, tensor, 0});
    return;
  }
  const auto pieces = std::size_t{shape_.layers} * geometry::planes;
  for (auto index = std::size_t{0}; index < pieces; ++index) {
    const auto offset = index * shape_.piece_bytes();
    places_.push_back({base + offset, tensor, offset});
  }
}

kv_memory kv_arena::describe(const std::string& fingerprint) const {
  auto res = kv_memory{};
  res.rank = rank_;
  res.device = device_;
  res.model_fingerprint = fingerprint;
  if (lane_)
    res.streams.push_back(lane_->handle());
  const auto page = shape_.packed ? shape_.block_bytes() : stride_;
  for (auto* tensor : tensors_)
    res.tensors.push_back(
      {tensor, tensor_bytes_, kind_, shape_.device_blocks + 1, stride_, page});
  for (auto group = std::size_t{0}; group < shape_.groups(); ++group)
    for (auto index = std::size_t{0}; index < places_.size(); ++index)
      res.references.push_back(
        {static_cast<group_id>(group),
         static_cast<std::uint32_t>(index / geometry::planes),
         places_[index].tensor, places_[index].offset, shape_.piece_bytes()});
  return res;
}

} // namespace kvtide::replay
