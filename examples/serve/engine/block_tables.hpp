// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "examples/serve/engine/block_pool.hpp"
#include "examples/serve/engine/sequence.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace serve {

/// Gives blocks to requests and takes them back: the block tables of all
/// groups. A sliding group has holes (`no_block`) where its window has passed.
class block_tables {
public:
  block_tables(const model_shape& shape, std::int32_t tokens_per_block,
               std::uint32_t blocks);

  [[nodiscard]] const block_pool& pool() const noexcept {
    return pool_;
  }

  [[nodiscard]] std::size_t groups() const noexcept {
    return shape_.groups();
  }

  /// Blocks that a request of this many tokens can need at a time.
  /// @param step tokens that one step computes at most
  [[nodiscard]] std::size_t most_needed(kvtide::token_count tokens,
                                        kvtide::token_count step) const;

  /// Starts the table of a request with what the device still has of it in all
  /// groups: whole blocks, and never the last known token, whose output is
  /// wanted. Sets `sequence::local`.
  void take_prefix(sequence& seq);

  /// Extends the table to hold `tokens` tokens. Compute goes on behind the
  /// first `ready`: what nothing from there on attends to becomes a hole.
  /// @returns false, without effect, if too few blocks are free.
  [[nodiscard]] bool grow(sequence& seq, kvtide::token_count tokens,
                          kvtide::token_count ready);

  /// After a failed load: replaces blocks that are not the request's any more,
  /// and fills holes that compute from token `from` on attends to.
  /// @param lost these are taken out of the table but not freed
  /// @returns false if too few blocks are free; the lost ones are out anyway.
  [[nodiscard]] bool mend(sequence& seq, kvtide::token_count from,
                          const std::vector<kvtide::block_id>& lost);

  /// Frees blocks that no token from `sequence::computed` on attends to.
  void leave_window(sequence& seq);

  /// Lets others find the blocks that are full, known and computed, or will be
  /// before any later step runs.
  void publish(sequence& seq);

  /// Takes all blocks back, except those in `kept`.
  void release(block_table& table, std::vector<kvtide::block_id> kept = {});

  /// Takes back blocks that were kept or lost.
  void release(const std::vector<kvtide::block_id>& blocks);

private:
  [[nodiscard]] std::size_t blocks_for(kvtide::token_count tokens) const;
  /// The first block that a token at `position` attends to.
  [[nodiscard]] std::size_t first_block(std::size_t group,
                                        kvtide::token_count position) const;
  [[nodiscard]] kvtide::block_id find(const sequence& seq, std::size_t index,
                                      std::size_t group) const;

  model_shape shape_;
  kvtide::token_count tokens_per_block_;
  block_pool pool_;
};

} // namespace serve
