// SPDX-License-Identifier: Apache-2.0

/// @file
/// Tokens without a model: every request has a token at every position, also
/// where none was sampled yet.

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include "tests/support/mix.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace kvtide::test {

/// Says which content belongs where. Equal prefixes have equal hashes.
class token_model {
public:
  /// The first `shared` tokens of `id` are those of `like`.
  void add(request_id id, request_id like, token_count shared) {
    auto made = text{{}, id};
    for (token_count at = 0; at < shared; ++at)
      made.prefixes.push_back(prefix(like, at));
    texts_[id] = std::move(made);
  }

  /// From `from` on the text of `id` is another one.
  void edit(request_id id, token_count from) {
    if (from > 0)
      (void)prefix(id, from - 1); // Nobody may have asked for it yet.
    auto& mine = texts_.at(id);
    mine.prefixes.resize(static_cast<std::size_t>(from));
    mine.salt = mix(id, ++edits_);
  }

  /// Identity of the prefix that ends with the token at `position`. Never zero.
  [[nodiscard]] std::uint64_t prefix(request_id id, token_count position) {
    auto& [prefixes, salt] = texts_.at(id);
    while (static_cast<token_count>(prefixes.size()) <= position)
      prefixes.push_back(mix(prefixes.empty() ? 0 : prefixes.back(), salt));
    return prefixes[static_cast<std::size_t>(position)];
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
  struct text {
    /// By position, as far as anybody has asked.
    std::vector<std::uint64_t> prefixes;
    std::uint64_t salt = 0;
  };

  std::map<request_id, text> texts_;
  std::uint64_t edits_ = 0;
};

} // namespace kvtide::test
