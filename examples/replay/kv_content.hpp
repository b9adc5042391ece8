// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "examples/replay/geometry.hpp"
#include "examples/replay/kv_arena.hpp"
#include "examples/replay/kv_span.hpp"
#include "examples/replay/pattern.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kvtide::replay {

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
  /// `kv_check::number`.
  std::uint64_t number = 0;
};

[[nodiscard]] std::string to_string(const mismatch& what);

/// What came of comparing.
struct check_tally {
  std::array<std::uint64_t, check_reasons> compared_bytes{};
  std::array<std::uint64_t, check_reasons> mismatches{};
  /// Of the lowest number; of the lowest rank if several have it.
  std::optional<mismatch> first;

  [[nodiscard]] std::uint64_t all_mismatches() const noexcept;

  /// Adds that of another rank, or of another time.
  void add(const check_tally& other);
};

/// Writes and compares the KV bytes of one rank. What a block must hold follows
/// from the request's text alone.
class kv_content {
public:
  /// @param arena Must outlive this object.
  kv_content(const geometry& shape, const kv_arena& arena, rank_id rank)
    : shape_(shape), arena_(&arena), rank_(rank) {
    // nop
  }

  /// Does what a forward pass does to these tokens' KV. On a GPU it is
  /// enqueued.
  void write(const kv_span& span);

  /// Compares all bytes, and counts each plane of a block that differs. Blocks
  /// on a GPU until all that is enqueued there is over.
  void check(const kv_check& what);

  [[nodiscard]] const check_tally& tally() const noexcept {
    return tally_;
  }

  /// @returns what was counted since the last call of this function.
  [[nodiscard]] check_tally take_tally();

private:
  // Calls `visit(piece, first byte, last byte, seed, plane)` for each stretch
  // of bytes.
  template <class Visit>
  void visit_bytes(const kv_span& span, Visit visit);

  geometry shape_;
  const kv_arena* arena_;
  rank_id rank_;
  check_tally tally_;
};

} // namespace kvtide::replay
