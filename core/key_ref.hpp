// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include "core/key_hash.hpp"

#include <cstdint>

namespace kvtide::core {

/// A key that lies somewhere else, which must stay where it is meanwhile, and
/// its digest: a lookup of a whole prompt copies no key and hashes none again.
struct key_ref {
  /// @pre `digest_ == digest_of(hash_, group_, model_)`
  key_ref(const prefix_hash& hash_, group_id group_, std::uint64_t model_,
          std::uint64_t digest_) noexcept
    : hash(&hash_), group(group_), model(model_), digest(digest_) {
    // nop
  }

  // NOLINTNEXTLINE(google-explicit-constructor): a key is meant either way.
  key_ref(const chunk_key& key) noexcept
    : key_ref(key.hash, key.group, key.model,
              digest_of(key.hash, key.group, key.model)) {
    // nop
  }

  [[nodiscard]] chunk_key get() const {
    return {*hash, group, model};
  }

  friend bool operator==(const key_ref& x, const chunk_key& y) noexcept {
    return x.group == y.group && x.model == y.model && *x.hash == y.hash;
  }

  const prefix_hash* hash;
  group_id group;
  std::uint64_t model;
  std::uint64_t digest;
};

} // namespace kvtide::core
