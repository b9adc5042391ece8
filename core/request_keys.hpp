// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include "core/key_list.hpp"
#include "core/layout.hpp"
#include "core/short_list.hpp"
#include "core/store_offer.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace kvtide::core {

/// The chunk keys of one request, made from the engine's prefix hashes. Others
/// read them through views.
class request_keys {
public:
  explicit request_keys(std::shared_ptr<const layout> shape);

  /// Prefix hashes received so far.
  [[nodiscard]] std::uint64_t hashes() const noexcept {
    return hashes_;
  }

  /// @param token_ids ids of the tokens that `hashes` cover; may be empty
  /// @param parent what the first chunk follows; empty for nothing, or no news
  void append(std::span<const prefix_hash> hashes,
              std::span<const std::int32_t> token_ids,
              const prefix_hash& parent);

  /// Forgets keys beyond `tokens`, and the hashes that they came from.
  void truncate(token_count tokens);

  /// One per group.
  [[nodiscard]] per_group<key_view> views() const;

  /// Adds what an event says of a chunk: its tokens, and what it follows.
  void describe(store_candidate& what) const;

private:
  std::shared_ptr<const layout> shape_;
  std::uint64_t hashes_ = 0;
  /// One per group.
  per_group<key_list> lists_;
  /// Ids of the leading tokens; fewer than the hashes cover if the engine sent
  /// none, or not from the start.
  std::vector<std::int32_t> token_ids_;
  prefix_hash parent_;
};

} // namespace kvtide::core
