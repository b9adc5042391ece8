// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/options.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvtide::replay {

/// The shape of the model's KV memory on one rank.
struct geometry {
  /// Layers per group, 1 to 1,024.
  std::uint32_t layers = 2;
  /// 1 to 1,024.
  std::uint32_t kv_heads = 1;
  /// Elements, 1 to 4,096.
  std::uint32_t head_size = 4;
  /// 1 to 8.
  std::uint32_t dtype_bytes = 1;
  /// 1 to 1,024.
  std::uint32_t tokens_per_block = 16;
  /// Blocks that can be used, at least 1; block 0 comes on top.
  std::uint32_t device_blocks = 65'536;
  /// All layers of a block behind one another in one tensor, instead of one
  /// tensor for each layer's K and V.
  bool packed = false;
  /// Adds a group of sliding-window layers; zero means none.
  std::uint32_t sliding_window = 0;

  static constexpr std::uint32_t planes = 2;

  /// Bytes of one token on one plane.
  [[nodiscard]] std::size_t token_bytes() const noexcept {
    return std::size_t{kv_heads} * head_size * dtype_bytes;
  }

  /// Bytes of one block on one plane.
  [[nodiscard]] std::size_t piece_bytes() const noexcept {
    return token_bytes() * tokens_per_block;
  }

  /// Bytes of one block.
  [[nodiscard]] std::size_t block_bytes() const noexcept {
    return piece_bytes() * layers * planes;
  }

  /// Of one rank.
  [[nodiscard]] std::size_t tensors() const noexcept {
    return packed ? 1 : std::size_t{layers} * planes;
  }

  /// Bytes that lie together, on the device and in a slot.
  [[nodiscard]] std::size_t fragment_bytes() const noexcept {
    return packed ? block_bytes() : piece_bytes();
  }

  [[nodiscard]] token_count block_tokens() const noexcept {
    return token_count{tokens_per_block};
  }

  [[nodiscard]] std::size_t groups() const noexcept {
    return sliding_window > 0 ? 2 : 1;
  }

  /// Window of a group in tokens; zero means full attention.
  [[nodiscard]] token_count window(std::size_t group) const noexcept {
    return group == 0 ? 0 : token_count{sliding_window};
  }

  /// Index of the first block that a token at `position` attends to.
  [[nodiscard]] std::size_t first_block(std::size_t group,
                                        token_count position) const noexcept {
    const auto width = window(group);
    if (width == 0 || position < width)
      return 0;
    return static_cast<std::size_t>((position - width + 1) / block_tokens());
  }

  /// Number of blocks that hold `tokens` tokens.
  [[nodiscard]] std::size_t blocks_for(token_count tokens) const noexcept {
    return static_cast<std::size_t>((tokens + block_tokens() - 1)
                                    / block_tokens());
  }
};

} // namespace kvtide::replay
