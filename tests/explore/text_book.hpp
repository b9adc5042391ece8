// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kvtide::explore {

/// What every request says, token by token, without a model: positions that
/// were not sampled yet have their token too. A token's identity includes all
/// tokens before it, as a prefix hash does.
class text_book {
public:
  /// A text whose first `shared` tokens are those of `like`.
  void add(request_id id, request_id like, token_count shared);

  /// From `from` on the text is another one.
  void edit(request_id id, token_count from);

  /// Never zero.
  [[nodiscard]] std::uint64_t token(request_id id, token_count at);

  /// The hash that an engine sends for the tokens before `end`.
  [[nodiscard]] prefix_hash hash(request_id id, token_count end);

  /// Remembers what a key stands for.
  void publish(const chunk_key& key, request_id id, std::size_t chunk,
               token_count chunk_tokens);

  /// The tokens of a chunk; null if nobody sent its key.
  [[nodiscard]] const std::vector<std::uint64_t>*
  tokens(const chunk_key& key) const;

  /// "R3#1": chunk 1 of request 3, who was the first to have it.
  [[nodiscard]] std::string name(const chunk_key& key) const;

private:
  struct text {
    std::vector<std::uint64_t> tokens;
    std::uint64_t salt = 0;
  };

  struct chunk {
    std::vector<std::uint64_t> tokens;
    std::string name;
  };

  std::map<request_id, text> texts_;
  std::map<chunk_key, chunk> chunks_;
  std::uint64_t edits_ = 0;
};

} // namespace kvtide::explore
