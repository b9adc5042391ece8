// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/kv_memory.hpp"

#include "core/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kvtide::explore {

/// Real memory in the place of one GPU: two layers in each block, eight bytes
/// per token and layer. All groups share the blocks.
class rank_memory {
public:
  static constexpr std::uint32_t layers = 2;

  rank_memory(std::shared_ptr<const core::layout> shape, rank_id rank,
              std::uint32_t blocks);

  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return own_.size() * sizeof(std::uint64_t);
  }

  /// Goes on with the same content elsewhere.
  /// @param there `bytes()` bytes that outlive all use
  void move_to(std::uint64_t* there);

  /// Fills it with what nobody has written.
  void spoil();

  /// What `register_kv` is told.
  [[nodiscard]] kv_memory describe();

  [[nodiscard]] std::uint64_t& cell(block_id block, std::uint32_t layer,
                                    token_count at);

  /// What should be there for a token in a block of `group`: every rank and
  /// layer has values of its own.
  [[nodiscard]] std::uint64_t value(std::uint64_t token, group_id group,
                                    std::uint32_t layer) const noexcept;

  /// A token of a chunk in the host pool: block-first, see gpu/geometry.hpp.
  [[nodiscard]] static const std::uint64_t&
  host_cell(const core::layout& shape, const std::byte* slot, group_id group,
            std::size_t block, std::uint32_t layer, token_count at);

private:
  std::shared_ptr<const core::layout> shape_;
  rank_id rank_ = 0;
  std::uint32_t blocks_ = 0;
  /// The largest of any group.
  token_count block_tokens_ = 0;
  std::vector<std::uint64_t> own_;
  std::uint64_t* cells_ = nullptr;
};

} // namespace kvtide::explore
