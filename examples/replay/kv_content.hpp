// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "examples/replay/geometry.hpp"
#include "examples/replay/kv_arena.hpp"
#include "examples/replay/pattern.hpp"
#include "examples/replay/token_text.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvtide::replay {

/// Why a block's bytes are looked at.
enum class check_reason : std::uint8_t {
  /// A load delivered the block.
  loaded,
  /// The device's prefix cache had the block.
  found_on_device,
  /// The request ends, and nobody may have written into its blocks.
  finished,
};

inline constexpr std::size_t check_reasons = 3;

[[nodiscard]] const char* to_word(check_reason reason) noexcept;

/// Tokens `[first, last)` of one block of a request, counted from the block's
/// start.
struct block_part {
  group_id group = 0;
  /// Index in the request's block table.
  std::size_t index = 0;
  block_id block = no_block;
  token_count first = 0;
  token_count last = 0;
};

/// Bytes that are not what the model computed for these tokens.
struct mismatch {
  check_reason reason = check_reason::loaded;
  request_id request = 0;
  block_part part;
  kv_plane where;
  /// Position among the request's tokens, and the byte of that token.
  token_count token = 0;
  std::size_t byte = 0;
  std::byte got{};
  std::byte want{};
};

[[nodiscard]] std::string to_string(const mismatch& what);

/// Writes and compares KV bytes on all ranks. What a block must hold follows
/// from the request's text alone.
class kv_content {
public:
  /// @param arenas One per rank; must outlive this object.
  kv_content(const geometry& shape, const std::vector<kv_arena>& arenas)
    : shape_(shape), arenas_(&arenas) {
    // nop
  }

  /// Does what a forward pass does to these tokens' KV. On a GPU it is
  /// enqueued.
  void write(const token_text& text, const block_part& part);

  /// Compares all bytes, and counts each plane of a block that differs. Blocks
  /// on a GPU until all that is enqueued there is over.
  void check(const token_text& text, const block_part& part, request_id request,
             check_reason reason);

  [[nodiscard]] std::uint64_t compared_bytes(check_reason reason) const {
    return compared_[static_cast<std::size_t>(reason)];
  }

  [[nodiscard]] std::uint64_t mismatches(check_reason reason) const {
    return mismatches_[static_cast<std::size_t>(reason)];
  }

  [[nodiscard]] std::uint64_t mismatches() const noexcept;

  [[nodiscard]] const std::optional<mismatch>& first_mismatch() const noexcept {
    return first_;
  }

private:
  // Calls `visit(arena, piece, first byte, last byte, seed, plane)` for each
  // stretch of bytes.
  template <class Visit>
  void visit_bytes(const token_text& text, const block_part& part, Visit visit);

  geometry shape_;
  const std::vector<kv_arena>* arenas_;
  std::array<std::uint64_t, check_reasons> compared_{};
  std::array<std::uint64_t, check_reasons> mismatches_{};
  std::optional<mismatch> first_;
};

} // namespace kvtide::replay
