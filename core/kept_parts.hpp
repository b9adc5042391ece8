// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "core/wide_digest.hpp"

#include <tsl/robin_map.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace kvtide::core {

/// What somebody who was not there all along says of a slot.
struct kept_chunk {
  slot_id slot = 0;
  wide_digest digest;
};

/// What the next life of a rank has found in its host pool, gathered part by
/// part. At most one entry per slot, whatever it says.
class kept_parts {
public:
  /// @param slots of the pool
  /// @returns false if there is no such slot, or it was named before. Of a slot
  ///          that was named with two digests nothing is known.
  bool add(const kept_chunk& chunk, std::uint64_t slots) {
    if (chunk.slot >= slots)
      return false;
    const auto [at, is_new] = chunks_.try_emplace(chunk.slot, chunk.digest);
    if (!is_new && at->second != chunk.digest)
      at.value().reset();
    return is_new;
  }

  /// All of it, each slot once.
  [[nodiscard]] std::vector<kept_chunk> take() {
    auto out = std::vector<kept_chunk>{};
    for (const auto& [slot, digest] : chunks_)
      if (digest)
        out.push_back({slot, *digest});
    chunks_.clear();
    return out;
  }

private:
  tsl::robin_map<slot_id, std::optional<wide_digest>> chunks_;
};

} // namespace kvtide::core
