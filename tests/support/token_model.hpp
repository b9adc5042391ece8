// SPDX-License-Identifier: Apache-2.0

/// @file
/// Tokens without a model: every request has a token at every position, also
/// where none was sampled yet.

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace kvtide::test {

/// Says which content belongs where. Equal prefixes have equal hashes.
class token_model {
public:
  /// The first `shared` tokens of `id` are those of `like`.
  void add(request_id id, request_id like, token_count shared) {
    texts_[id] = {like, shared, {}};
  }

  /// Identity of the prefix that ends with the token at `position`. Never zero.
  [[nodiscard]] std::uint64_t prefix(request_id id, token_count position) {
    auto& text = texts_.at(id);
    if (position < text.shared)
      return prefix(text.like, position);
    while (static_cast<token_count>(text.prefixes.size()) + text.shared
           <= position)
      text.prefixes.push_back(next(id, text));
    return text.prefixes[static_cast<std::size_t>(position - text.shared)];
  }

  /// What compute writes for the token at `position` in a block of `group`.
  [[nodiscard]] std::uint64_t content(request_id id, group_id group,
                                      token_count position) {
    return mix(prefix(id, position), group + 1);
  }

  /// The hash that the engine sends for the tokens up to `end`.
  [[nodiscard]] prefix_hash hash(request_id id, token_count end) {
    const auto value = prefix(id, end - 1);
    return {&value, sizeof(value)};
  }

private:
  struct token_text {
    request_id like = 0;
    token_count shared = 0;
    /// Of the positions from `shared` on.
    std::vector<std::uint64_t> prefixes;
  };

  [[nodiscard]] static std::uint64_t mix(std::uint64_t x, std::uint64_t y) {
    x = (x ^ (y + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9;
    return (x ^ (x >> 29)) | 1;
  }

  [[nodiscard]] std::uint64_t next(request_id id, const token_text& of) {
    if (!of.prefixes.empty())
      return mix(of.prefixes.back(), id);
    return mix(of.shared > 0 ? prefix(of.like, of.shared - 1) : 0, id);
  }

  std::map<request_id, token_text> texts_;
};

} // namespace kvtide::test
