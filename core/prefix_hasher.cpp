// SPDX-License-Identifier: Apache-2.0

#include "kvtide/prefix_hasher.hpp"

#include "core/xxh3.hpp"

#include <algorithm>

namespace kvtide {

namespace {

/// The same bytes on every machine.
XXH128_canonical_t digest(const std::vector<unsigned char>& parent,
                          const std::vector<std::int32_t>& tokens) {
  auto input = parent;
  for (const auto token : tokens)
    for (auto shift = 0; shift < 32; shift += 8)
      input.push_back(
        static_cast<unsigned char>(static_cast<std::uint32_t>(token) >> shift));
  auto out = XXH128_canonical_t{};
  XXH128_canonicalFromHash(&out, XXH3_128bits(input.data(), input.size()));
  return out;
}

} // namespace

prefix_hasher::prefix_hasher(std::int32_t tokens_per_hash, std::string salt)
  : tokens_per_hash_(
    static_cast<std::size_t>(std::max<std::int32_t>(tokens_per_hash, 1))),
    parent_(salt.begin(), salt.end()) {
  // nop
}

std::vector<prefix_hash> prefix_hasher::append(const std::int32_t* tokens,
                                               std::size_t count) {
  auto out = std::vector<prefix_hash>{};
  for (std::size_t i = 0; i < count; ++i) {
    tail_.push_back(tokens[i]);
    if (tail_.size() < tokens_per_hash_)
      continue;
    const auto made = digest(parent_, tail_);
    tail_.clear();
    parent_.assign(std::begin(made.digest), std::end(made.digest));
    out.emplace_back(made.digest, sizeof(made.digest));
    ++made_;
  }
  return out;
}

} // namespace kvtide
