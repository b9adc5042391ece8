// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/key.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace kvtide::core {

/// The pool's content, for tests and diagnostics.
struct pool_state {
  /// Lists of ARC, each from the oldest key to the newest.
  struct arc_state {
    std::vector<chunk_key> t1;
    std::vector<chunk_key> t2;
    std::vector<chunk_key> b1;
    std::vector<chunk_key> b2;
    double target = 0;
  };

  /// Slots that can be handed out at once.
  std::size_t free = 0;
  /// Entries that nobody reads, writes or holds.
  std::size_t evictable = 0;
  /// Entries that are being written.
  std::size_t writing = 0;
  /// Entries that are read or held.
  std::size_t busy = 0;
  /// Slots that a late copy may still touch.
  std::size_t quarantined = 0;
  /// Slots under at least one promise.
  std::size_t held = 0;
  /// Idle keys from the oldest to the newest; none under ARC.
  std::optional<std::vector<chunk_key>> lru;
  std::optional<arc_state> arc;
};

} // namespace kvtide::core
