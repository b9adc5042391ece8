// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/key.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvtide {

/// Makes prefix hashes for engines that have none: each covers
/// `tokens_per_hash` tokens and, through its predecessor, all tokens before
/// them (XXH3, 128 bits). Equal prefixes under equal salts give equal hashes,
/// in every process.
///
/// XXH3 is fast and not cryptographic: where tenants must not be able to make
/// two prompts collide on purpose, give each a secret salt, or bring hashes of
/// your own.
///
/// Thread-safety: none; one hasher per request.
class prefix_hasher {
public:
  /// @param tokens_per_hash as `options::tokens_per_hash`, at least 1; anything
  ///        smaller counts as 1
  /// @param salt whatever else the KV depends on: adapter, images, tenant
  explicit prefix_hasher(std::int32_t tokens_per_hash, std::string salt = {});

  /// Takes more tokens of the request.
  /// @returns the hashes that became complete, for `extend_keys::hashes`
  [[nodiscard]] std::vector<prefix_hash> append(const std::int32_t* tokens,
                                                std::size_t count);

  /// Hashes made so far: the next ones' `extend_keys::first`.
  [[nodiscard]] std::uint64_t made() const noexcept {
    return made_;
  }

private:
  std::size_t tokens_per_hash_ = 1;
  std::uint64_t made_ = 0;
  /// The hash before, then the tokens that do not fill a hash yet.
  std::vector<unsigned char> parent_;
  std::vector<std::int32_t> tail_;
};

} // namespace kvtide
