// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/token_text.hpp"

#include <limits>

namespace kvtide::replay {

std::uint64_t token_text::hash(std::size_t index) const {
  while (hashes_.size() <= index) {
    const auto start
      = static_cast<token_count>(hashes_.size()) * tokens_per_hash_;
    auto state = hashes_.empty() ? root : hashes_.back();
    for (auto at = token_count{0}; at < tokens_per_hash_;) {
      const auto end
        = std::min(tokens_per_hash_, end_of_run(start + at) - start);
      state = mix(mix(state, identity_of(start + at)),
                  static_cast<std::uint64_t>(end - at));
      at = end;
    }
    hashes_.push_back(state);
  }
  return hashes_[index];
}

std::uint64_t token_text::identity_of(token_count position) const {
  if (position < parts_.front().begin)
    return mix(
      1, (*prefix_ids_)[static_cast<std::size_t>(position / tokens_per_id)]);
  auto part = parts_.rbegin();
  while (part->begin > position)
    ++part;
  return mix(2, part->identity);
}

token_count token_text::end_of_run(token_count position) const {
  if (const auto own = parts_.front().begin; position < own)
    return std::min(own, (position / tokens_per_id + 1) * tokens_per_id);
  for (const auto& part : parts_)
    if (part.begin > position)
      return part.begin;
  return std::numeric_limits<token_count>::max();
}

} // namespace kvtide::replay
