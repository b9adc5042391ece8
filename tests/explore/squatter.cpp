// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/squatter.hpp"

#include "core/store_offer.hpp"

#include <algorithm>
#include <span>

namespace kvtide::explore {

namespace {

void give_back(core::host_pool& pool, std::span<const chunk_key> keys) {
  pool.complete_store(keys, false);
}

} // namespace

squatter::squatter(core::host_pool& pool, std::size_t left) : pool_(&pool) {
  // One at a time: reference rules refuse an offer as a whole (R5).
  for (auto refused = false; !refused;) {
    const auto number = taken_.size();
    auto chunk = core::store_candidate{};
    chunk.key.hash = {&number, sizeof(number)};
    chunk.end_tokens = 1;
    refused = pool.prepare_store({0, {chunk}, {}, 0}).refused();
    if (!refused)
      taken_.push_back(chunk.key);
  }
  const auto given_back = std::min(left, taken_.size());
  give_back(pool, {taken_.data(), given_back});
  taken_.erase(taken_.begin(),
               taken_.begin() + static_cast<std::ptrdiff_t>(given_back));
}

squatter::~squatter() {
  give_back(*pool_, taken_);
}

} // namespace kvtide::explore
