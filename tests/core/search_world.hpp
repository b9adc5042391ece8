// SPDX-License-Identifier: Apache-2.0

/// @file
/// A pool with made-up content, and one prompt to search for in it.

#pragma once

#include "core/host_pool.hpp"
#include "core/layout.hpp"
#include "core/rules.hpp"
#include "core/search.hpp"
#include "tests/core/pool_keys.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::core {

/// One block per chunk.
inline layout search_layout(std::vector<group_options> groups,
                            int tokens_per_hash = 4) {
  auto opts = options{};
  opts.groups = std::move(groups);
  opts.blocks_per_chunk = 1;
  opts.tokens_per_hash = tokens_per_hash;
  auto out = make_layout(opts).value();
  out.model = 0;
  return out;
}

/// A prompt of `known` tokens with all its keys; chunk c of every group has the
/// hash "c".
class search_world {
public:
  search_world(layout of, const rules& rule, token_count known)
    : shape_(std::move(of)), pool_({1'000, eviction_policy::lru, 1, {}}, rule),
      uut_(shape_, rule, pool_, true) {
    in_.known = known;
    for (group_id group = 0; group < shape_.groups.size(); ++group) {
      const auto chunks = known / shape_.groups[group].chunk_tokens;
      keys_.push_back(
        view_of(numbered("", static_cast<std::size_t>(chunks)), group));
    }
    in_.keys = keys_;
  }

  search_world(const search_world&) = delete;
  search_world& operator=(const search_world&) = delete;

  /// @param first_token as `store_candidate::first_token`
  void begin_store(group_id group, std::uint32_t chunk,
                   token_count first_token = 0) {
    auto what = store_candidate{};
    what.key = key(group, chunk);
    what.chunk = chunk;
    what.end_tokens
      = (token_count{chunk} + 1) * shape_.groups[group].chunk_tokens;
    what.first_token = first_token;
    auto offer = store_offer{};
    offer.candidates.push_back(what);
    static_cast<void>(pool_.prepare_store(offer));
  }

  void put(group_id group, std::uint32_t chunk, token_count first_token = 0) {
    begin_store(group, chunk, first_token);
    pool_.complete_store(std::vector{key(group, chunk)}, true);
  }

  /// Chunks `first` to `last - 1`.
  void put_range(group_id group, std::uint32_t first, std::uint32_t last) {
    for (auto chunk = first; chunk < last; ++chunk)
      put(group, chunk);
  }

  /// A key that exists or not.
  static chunk_key key(group_id group, std::uint32_t chunk) {
    return named_key(std::to_string(chunk) + "/" + std::to_string(group));
  }

  std::optional<token_count> run() {
    return uut_.run(in_);
  }

  chunk_range reads(group_id group, token_count tokens) const {
    return uut_.reads(in_, group, tokens);
  }

  search_input& in() noexcept {
    return in_;
  }

  host_pool& pool() noexcept {
    return pool_;
  }

  const layout& shape() const noexcept {
    return shape_;
  }

private:
  layout shape_;
  host_pool pool_;
  hit_search uut_;
  std::vector<key_view> keys_;
  search_input in_;
};

} // namespace kvtide::core
