// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include "core/slot_list.hpp"

#include <cstdint>
#include <vector>

namespace kvtide::core {

/// One chunk in the host pool. Entries are addressed by their slot. Two cache
/// lines: searches read many of them.
struct alignas(64) pool_entry {
  static constexpr std::int32_t absent = -2;
  static constexpr std::int32_t writing = -1;
  static constexpr std::int32_t idle = 0;

  /// `absent`, `writing`, `idle`, or the number of loads and promises that need
  /// it.
  std::int32_t count = absent;
  /// Promises among `count`.
  std::uint32_t holds = 0;
  /// Protected from eviction while this equals the pool's current mark.
  std::uint64_t mark = 0;
  /// In the set of chunks that are being loaded (C4).
  bool loading = false;
  /// Index of the chunk in every request that has its key.
  std::uint32_t chunk = 0;
  /// First token that is really there (R4).
  token_count first_token = 0;
  chunk_key key;
};

using entry_table = std::vector<pool_entry>;

/// The keys of a list from the oldest to the newest.
[[nodiscard]] inline std::vector<chunk_key>
keys_of(const slot_list& list, const entry_table& entries) {
  auto out = std::vector<chunk_key>{};
  out.reserve(list.size());
  for (auto at = list.oldest(); at != slot_list::none; at = list.newer(at))
    out.push_back(entries[at].key);
  return out;
}

} // namespace kvtide::core
