// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/key.hpp"

#include <xxhash.h>

#include <cstddef>

namespace kvtide::core {

/// Hash function of maps that are keyed by content. XXH3: the engine's prefix
/// hashes need not be uniform.
struct key_hash {
  [[nodiscard]] std::size_t operator()(const chunk_key& key) const noexcept {
    return static_cast<std::size_t>(XXH3_64bits_withSeed(
      key.hash.data(), key.hash.size(), key.model ^ key.group));
  }
};

} // namespace kvtide::core
