// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include "core/key_list.hpp"
#include "core/layout.hpp"
#include "core/request_update.hpp"
#include "core/rules.hpp"
#include "core/store_offer.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kvtide::core {

/// What a request could store, before the pool was asked.
struct store_plan {
  std::vector<store_candidate> candidates;
  /// The blocks of each candidate, in their order; `no_block` is not copied.
  std::vector<std::vector<block_id>> blocks;
  /// Per group: chunks below the clamp.
  std::vector<std::size_t> storable;
};

/// What a load has to read, before the pool was asked for slots.
struct load_plan {
  std::vector<job_row> rows;
  /// Per group: logical index of the first block that is loaded.
  std::vector<std::uint32_t> first_block;
};

/// The keys and block tables of one request. Plain bookkeeping, no threads.
class request_book {
public:
  request_book(std::shared_ptr<const layout> shape, const rules& rule,
               token_count prompt_tokens);

  void apply(const request_update& update);

  /// Forgets keys beyond `tokens`, and the hashes that they came from.
  void truncate(token_count tokens);

  /// One view per group.
  [[nodiscard]] std::vector<key_view> views() const;

  /// SCHEMA 4.5, items 2 and 3.
  /// @param next per group: first chunk not yet considered stored
  [[nodiscard]] store_plan
  plan_store(token_count wanted, const std::vector<std::size_t>& next) const;

  /// SCHEMA 4.3, items 2 to 4.
  /// @pre `blocks` and `hashed` have one list per group
  [[nodiscard]] load_plan
  plan_load(token_count total, const std::vector<std::vector<block_id>>& blocks,
            const std::vector<std::vector<std::uint8_t>>& hashed) const;

private:
  struct group_book {
    key_list keys;
    std::vector<block_id> table;
  };

  void append_hash(const prefix_hash& hash);

  [[nodiscard]] bool reachable(const group_layout& group, std::size_t chunk,
                               std::size_t storable) const noexcept;

  /// Blocks of a chunk without those that lie before a hole (R4), and the
  /// first token that is really there.
  [[nodiscard]] std::vector<block_id>
  stored_blocks(const group_layout& group, const group_book& book,
                std::size_t chunk, token_count& first_token) const;

  [[nodiscard]] std::vector<std::int32_t> tokens_of(const group_layout& group,
                                                    std::size_t chunk) const;

  std::shared_ptr<const layout> shape_;
  const rules* rule_;
  token_count prompt_ = 0;
  std::uint64_t hashes_ = 0;
  std::vector<group_book> groups_;
  /// Ids of the leading tokens; shorter than the hashes if the engine sent
  /// none, or not from the start.
  std::vector<std::int32_t> token_ids_;
  /// What the first chunk follows; empty for nothing.
  prefix_hash parent_;
};

} // namespace kvtide::core
