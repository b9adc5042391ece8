// SPDX-License-Identifier: Apache-2.0

#include "core/request_keys.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::core {

request_keys::request_keys(std::shared_ptr<const layout> shape)
  : shape_(std::move(shape)) {
  lists_.reserve(shape_->groups.size());
  for (group_id g = 0; g < shape_->groups.size(); ++g)
    lists_.emplace_back(g, shape_->model);
}

void request_keys::append(std::span<const prefix_hash> hashes,
                          std::span<const std::int32_t> token_ids,
                          const prefix_hash& parent) {
  // Behind hashes without ids, ids would be taken for those of other tokens.
  if (token_ids_.size()
      == hashes_ * static_cast<std::uint64_t>(shape_->hash_tokens))
    token_ids_.insert(token_ids_.end(), token_ids.begin(), token_ids.end());
  for (const auto& hash : hashes) {
    ++hashes_;
    for (std::size_t g = 0; g < lists_.size(); ++g)
      if (hashes_ % shape_->groups[g].hashes_per_chunk == 0)
        lists_[g].append(hash); // The last hash of a chunk is its key.
  }
  if (parent.size() > 0)
    parent_ = parent;
}

void request_keys::truncate(token_count tokens) {
  const auto left = static_cast<std::uint64_t>(tokens / shape_->hash_tokens);
  if (left >= hashes_)
    return;
  hashes_ = left;
  for (std::size_t g = 0; g < lists_.size(); ++g)
    lists_[g].truncate(left / shape_->groups[g].hashes_per_chunk);
  const auto ids = static_cast<std::size_t>(left)
                 * static_cast<std::size_t>(shape_->hash_tokens);
  token_ids_.resize(std::min(token_ids_.size(), ids));
}

per_group<key_view> request_keys::views() const {
  auto out = per_group<key_view>{};
  out.reserve(lists_.size());
  for (const auto& list : lists_)
    out.push_back(list.view());
  return out;
}

void request_keys::describe(store_candidate& what) const {
  if (what.chunk == 0 && parent_.size() > 0)
    what.parent = std::make_shared<const chunk_key>(
      chunk_key{parent_, what.key.group, what.key.model});
  const auto length
    = static_cast<std::size_t>(shape_->groups[what.key.group].chunk_tokens);
  const auto first = what.chunk * length;
  if (first + length > token_ids_.size())
    return;
  const auto begin = token_ids_.begin() + static_cast<std::ptrdiff_t>(first);
  what.token_ids.assign(begin, begin + static_cast<std::ptrdiff_t>(length));
}

} // namespace kvtide::core
