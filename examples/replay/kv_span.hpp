// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the engine tells its ranks of tokens: where their KV lies, and a seed
/// from which its bytes follow. The texts themselves stay with the engine.

#pragma once

#include "kvtide/ids.hpp"

#include "examples/replay/token_text.hpp"

#include <cstddef>
#include <cstdint>
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

/// Tokens of one identity in one block; the same on all ranks.
struct kv_span {
  block_part part;
  /// See `token_text::visit_runs`.
  std::uint64_t seed = 0;
};

/// Bytes to compare.
struct kv_check {
  kv_span span;
  request_id request = 0;
  check_reason reason = check_reason::loaded;
  /// Counts up over the whole replay, so that the first of many wrong ones can
  /// be named.
  std::uint64_t number = 0;
};

/// What one step does to the KV memory of every rank: it writes, then it reads.
/// Or, between two steps, reads alone.
struct kv_work {
  std::vector<kv_span> writes;
  std::vector<kv_check> checks;

  void clear() {
    writes.clear();
    checks.clear();
  }

  [[nodiscard]] bool empty() const noexcept {
    return writes.empty() && checks.empty();
  }
};

/// Calls `add` with each span of a part of a text, in order.
template <class Add>
void split_into_spans(const token_text& text, const block_part& part, Add add) {
  text.visit_runs(
    part.index, part.first, part.last,
    [&](std::uint64_t seed, token_count first, token_count last) {
      add(kv_span{{part.group, part.index, part.block, first, last}, seed});
    });
}

} // namespace kvtide::replay
