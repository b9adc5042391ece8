// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/text_book.hpp"

namespace kvtide::explore {

void text_book::publish(const chunk_key& key, request_id id, std::size_t index,
                        token_count chunk_tokens) {
  auto& known = chunks_[key];
  if (!known.tokens.empty())
    return;
  const auto first = static_cast<token_count>(index) * chunk_tokens;
  for (token_count at = first; at < first + chunk_tokens; ++at)
    known.tokens.push_back(prefix(id, at));
  known.name = "R" + std::to_string(id) + "#" + std::to_string(index);
  if (key.group > 0)
    known.name += "/" + std::to_string(key.group);
}

const std::vector<std::uint64_t>*
text_book::tokens(const chunk_key& key) const {
  const auto found = chunks_.find(key);
  return found != chunks_.end() ? &found->second.tokens : nullptr;
}

std::string text_book::name(const chunk_key& key) const {
  const auto found = chunks_.find(key);
  return found != chunks_.end() ? found->second.name : "an unknown chunk";
}

} // namespace kvtide::explore
