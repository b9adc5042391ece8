// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/text_book.hpp"

#include "tests/explore/mix.hpp"

namespace kvtide::explore {

void text_book::add(request_id id, request_id like, token_count shared) {
  auto made = text{{}, id};
  for (token_count at = 0; at < shared; ++at)
    made.tokens.push_back(token(like, at));
  texts_[id] = std::move(made);
}

void text_book::edit(request_id id, token_count from) {
  auto& mine = texts_.at(id);
  if (static_cast<token_count>(mine.tokens.size()) > from)
    mine.tokens.resize(static_cast<std::size_t>(from));
  mine.salt = mix(id, ++edits_);
}

std::uint64_t text_book::token(request_id id, token_count at) {
  auto& mine = texts_.at(id);
  while (static_cast<token_count>(mine.tokens.size()) <= at)
    mine.tokens.push_back(
      mix(mine.tokens.empty() ? 0 : mine.tokens.back(), mine.salt));
  return mine.tokens[static_cast<std::size_t>(at)];
}

prefix_hash text_book::hash(request_id id, token_count end) {
  const auto value = token(id, end - 1);
  return {&value, sizeof(value)};
}

void text_book::publish(const chunk_key& key, request_id id, std::size_t index,
                        token_count chunk_tokens) {
  auto& known = chunks_[key];
  if (!known.tokens.empty())
    return;
  const auto first = static_cast<token_count>(index) * chunk_tokens;
  for (token_count at = first; at < first + chunk_tokens; ++at)
    known.tokens.push_back(token(id, at));
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
