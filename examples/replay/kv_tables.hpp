// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "examples/replay/block_pool.hpp"
#include "examples/replay/geometry.hpp"
#include "examples/replay/sequence.hpp"

#include <cstdint>
#include <vector>

namespace kvtide::replay {

/// Gives blocks to sequences and takes them back: the block tables of all
/// groups, and the prefix cache of the device.
class kv_tables {
public:
  explicit kv_tables(const geometry& shape)
    : shape_(shape), pool_(shape.device_blocks) {
    // nop
  }

  [[nodiscard]] const block_pool& pool() const noexcept {
    return pool_;
  }

  /// @returns how many leading tokens of a text the device still has in all
  ///          groups: whole blocks, at most `limit` tokens.
  [[nodiscard]] token_count find_prefix(const token_text& text,
                                        token_count limit) const;

  /// Starts the tables of a sequence with `tokens` tokens that `find_prefix`
  /// found.
  void take_prefix(sequence& seq, token_count tokens);

  /// Extends the tables to hold `tokens` tokens, of which the first `ready`
  /// need no more compute: blocks that nothing behind them attends to are left
  /// out.
  /// @returns false, without effect, if too few blocks are free.
  [[nodiscard]] bool grow(sequence& seq, token_count tokens, token_count ready);

  /// Frees the blocks that no token from `seq.computed` on attends to.
  void leave_window(sequence& seq);

  /// Lets others find the blocks that are full, computed and known.
  void publish(sequence& seq);

  /// Takes all blocks back, except those in `kept`.
  void release(sequence& seq, block_pool::reuse order,
               std::vector<block_id> kept = {});

  /// Takes back blocks that were kept.
  void release(const std::vector<block_id>& blocks);

  /// Nothing can be found by its content any more.
  void forget_contents() {
    pool_.forget_contents();
  }

private:
  [[nodiscard]] block_id find(const token_text& text, std::size_t index,
                              std::size_t group) const;

  geometry shape_;
  block_pool pool_;
};

} // namespace kvtide::replay
