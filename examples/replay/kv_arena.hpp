// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/kv_memory.hpp"
#include "kvtide/result.hpp"

#include "examples/replay/geometry.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace kvtide::replay {

/// The "GPU memory" of one rank: plain memory that both groups share, block by
/// block. Pages take room only once they are written.
class kv_arena {
public:
  /// @returns `ec::out_of_memory` if the system refuses.
  static result<kv_arena> create(const geometry& shape, rank_id rank);

  /// Bytes of one block on one plane of one layer.
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

  kv_arena(const geometry& shape, rank_id rank) : shape_(shape), rank_(rank) {
    // nop
  }

  geometry shape_;
  rank_id rank_;
  std::size_t stride_ = 0;
  std::size_t tensor_bytes_ = 0;
  std::vector<mapping> tensors_;
  std::vector<place> places_;
};

} // namespace kvtide::replay
