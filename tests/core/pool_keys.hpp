// SPDX-License-Identifier: Apache-2.0

/// @file
/// Short ways to write keys, views and offers in tests of the pool.

#pragma once

#include "core/key_list.hpp"
#include "core/store_offer.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvtide::core {

/// A key from "<hash>/<group>"; group 0 if there is no slash.
inline chunk_key named_key(std::string_view name, std::uint64_t model = 0) {
  const auto slash = name.find('/');
  const auto hash = name.substr(0, slash);
  auto out = chunk_key{prefix_hash{hash.data(), hash.size()}, 0, model};
  if (slash != std::string_view::npos)
    out.group
      = static_cast<group_id>(std::stoul(std::string{name.substr(slash + 1)}));
  return out;
}

inline std::string name_of(const chunk_key& key) {
  auto out = std::string(key.hash.size(), '\0');
  for (std::size_t at = 0; at < out.size(); ++at)
    out[at] = static_cast<char>(key.hash.data()[at]);
  return out + "/" + std::to_string(key.group);
}

inline std::vector<chunk_key>
named_keys(std::initializer_list<std::string_view> names) {
  auto out = std::vector<chunk_key>{};
  for (const auto name : names)
    out.push_back(named_key(name));
  return out;
}

inline std::vector<std::string> names_of(std::span<const chunk_key> keys) {
  auto out = std::vector<std::string>{};
  for (const auto& key : keys)
    out.push_back(name_of(key));
  return out;
}

/// Tokens per chunk in `offer_of`.
inline constexpr token_count test_chunk = 4;

/// Offers keys as consecutive chunks from `first` on, in the order given, each
/// group counted by itself. Without the views of a request.
inline store_offer offer_of(std::span<const chunk_key> keys,
                            request_id request = 1, std::uint32_t first = 0) {
  auto out = store_offer{};
  out.request = request;
  auto next = std::vector<std::uint32_t>{};
  for (const auto& key : keys) {
    if (key.group >= next.size())
      next.resize(std::size_t{key.group} + 1, first);
    auto what = store_candidate{};
    what.key = key;
    what.chunk = next[key.group]++;
    what.end_tokens = (token_count{what.chunk} + 1) * test_chunk;
    out.candidates.push_back(what);
  }
  return out;
}

/// The view of a request whose chunks have these hashes.
inline key_view view_of(std::span<const std::string> hashes, group_id group = 0,
                        std::uint64_t model = 0) {
  auto list = key_list{group, model};
  for (const auto& hash : hashes)
    list.append({hash.data(), hash.size()});
  return list.view();
}

/// The hashes "<prefix>0" to "<prefix>(n-1)".
inline std::vector<std::string> numbered(std::string_view prefix,
                                         std::size_t n) {
  auto out = std::vector<std::string>{};
  for (std::size_t at = 0; at < n; ++at)
    out.push_back(std::string{prefix} + std::to_string(at));
  return out;
}

} // namespace kvtide::core
