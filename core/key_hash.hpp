// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include "core/xxh3.hpp"

#include <cstdint>

namespace kvtide::core {

/// Hash of a key, for maps that are keyed by content. XXH3: the engine's prefix
/// hashes need not be uniform.
[[nodiscard]] inline std::uint64_t digest_of(const prefix_hash& hash,
                                             group_id group,
                                             std::uint64_t model) noexcept {
  return XXH3_64bits_withSeed(hash.data(), hash.size(), model ^ group);
}

} // namespace kvtide::core
