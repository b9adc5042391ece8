// SPDX-License-Identifier: Apache-2.0

/// @file
/// A model that costs nothing, and what its clients ask of it: enough to see
/// one wrong byte of KV in what is generated.

#pragma once

#include "kvtide/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace epoll_loop {

using tokens_t = std::vector<std::int32_t>;

/// Shared by a third of the requests.
constexpr std::size_t prefix_tokens = 64;
constexpr std::size_t prompt_tokens = 88;
/// Of a request at its end: what the prompt has not is generated.
constexpr std::size_t all_tokens = 96;

/// The "KV" of a token is one number that depends on the numbers of all tokens
/// before it, so that one wrong byte changes what is generated.
using kv_t = std::uint64_t;

inline kv_t attend(kv_t sum, kv_t before) {
  return (sum ^ before) * 0x9e37'79b9'7f4a'7c15u;
}

/// @param sum of the tokens before, from `attend`; zero for none
inline kv_t kv_of(kv_t sum, std::int32_t token) {
  return attend(sum, static_cast<kv_t>(token)) >> 3;
}

/// @param last KV of the last token
inline std::int32_t next_token(kv_t last) {
  return static_cast<std::int32_t>(last % 50'000);
}

/// What a request must generate, computed without any block.
/// @returns the tokens of the prompt and those behind it
inline tokens_t generated_from(tokens_t tokens) {
  auto kv = std::vector<kv_t>{};
  while (tokens.size() < all_tokens) {
    for (auto i = kv.size(); i < tokens.size(); ++i) {
      auto sum = kv_t{0};
      for (auto before : kv)
        sum = attend(sum, before);
      kv.push_back(kv_of(sum, tokens[i]));
    }
    tokens.push_back(next_token(kv.back()));
  }
  return tokens;
}

/// Requests with the same rest of three begin with the same prefix.
inline tokens_t prompt_of(kvtide::request_id id) {
  auto out = tokens_t{};
  for (std::size_t i = 0; i < prompt_tokens; ++i) {
    const auto who = i < prefix_tokens ? id % 3 : id + 100;
    out.push_back(static_cast<std::int32_t>(who * 1'000 + i));
  }
  return out;
}

} // namespace epoll_loop
