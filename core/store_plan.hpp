// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include "core/block_tables.hpp"
#include "core/key_list.hpp"
#include "core/layout.hpp"
#include "core/rules.hpp"
#include "core/short_list.hpp"
#include "core/store_offer.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace kvtide::core {

/// What a request has to store.
struct request_stock {
  /// Tokens of its prompt.
  token_count prompt = 0;
  /// One per group.
  std::span<const key_view> keys;
  const block_tables& tables;
};

/// What a request could store, before the pool was asked.
struct store_plan {
  short_list<store_candidate, 1> candidates;
  /// Per group: chunks below the clamp.
  per_group<std::size_t> storable;
};

/// What can be stored of the chunks from `next` on if `wanted` tokens should be
/// (C8).
/// @param next per group: first chunk not yet considered stored
/// @pre no table has forgotten a block of these chunks
[[nodiscard]] store_plan plan_store(const layout& shape, const rules& rule,
                                    const request_stock& stock,
                                    token_count wanted,
                                    std::span<const std::size_t> next);

/// The rows of a job that stores what was granted. Takes the blocks out of
/// `candidates`, which are those that were offered.
[[nodiscard]] job_rows rows_of(const store_grant& grant,
                               std::span<store_candidate> candidates);

} // namespace kvtide::core
