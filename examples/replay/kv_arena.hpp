// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/gpu.hpp"
#include "kvtide/kv_memory.hpp"
#include "kvtide/result.hpp"

#include "examples/replay/geometry.hpp"
#include "examples/replay/gpu_lane.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace kvtide::replay {

/// The GPU memory of one rank, which both groups share, block by block. On the
/// host it is plain memory, and pages take room only once they are written.
class kv_arena {
public:
  /// @returns `ec::out_of_memory` if the system refuses.
  static result<kv_arena> create(const geometry& shape, rank_id rank);

  /// The same on a GPU, with a compute stream.
  /// @returns also what the GPU says
  static result<kv_arena> create_on_gpu(const geometry& shape, rank_id rank,
                                        int device);

  /// Who reads and writes the memory; null on the host, where everybody may.
  [[nodiscard]] gpu_lane* lane() const noexcept {
    return lane_.get();
  }

  /// Bytes of one block on one plane of one layer; on a GPU not to be read or
  /// written here.
  [[nodiscard]] std::byte* piece(block_id block, std::uint32_t layer,
                                 std::uint32_t plane) const noexcept {
    const auto& at = places_[layer * geometry::planes + plane];
    return at.base + std::size_t{block} * stride_;
  }

  /// What `rank::register_kv` wants to know. Valid while this object lives.
  [[nodiscard]] kv_memory describe(const std::string& fingerprint) const;

private:
  struct unmap {
    std::size_t bytes = 0;
    void operator()(std::byte* base) const noexcept;
  };
  using mapping = std::unique_ptr<std::byte, unmap>;

  // Where block 0 of one plane of one layer starts.
  struct place {
    std::byte* base = nullptr;
    std::uint32_t tensor = 0;
    std::size_t offset = 0;
  };

  kv_arena(const geometry& shape, rank_id rank);

  void add_tensor(std::byte* base);

  geometry shape_;
  rank_id rank_;
  std::size_t stride_ = 0;
  std::size_t tensor_bytes_ = 0;
  memory_kind kind_ = memory_kind::host;
  int device_ = 0;
  /// Who owns the tensors: the one on the host, the other on a GPU.
  std::vector<mapping> mappings_;
  std::vector<gpu::device_memory> allocations_;
  std::vector<std::byte*> tensors_;
  std::vector<place> places_;
  /// Goes before the memory.
  std::unique_ptr<gpu_lane> lane_;
};

} // namespace kvtide::replay
