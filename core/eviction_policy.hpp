// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a policy knows of an entry, and what the pool asks of a policy.

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include "core/pool_state.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kvtide::core {

/// One chunk in the host pool. Entries are addressed by their slot.
struct pool_entry {
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
  /// In the set of chunks that are being loaded (SCHEMA 4.2).
  bool loading = false;
  /// First token that is really there (R4).
  token_count first_token = 0;
  chunk_key key;
  /// The chunk before it in the same group, if known.
  std::optional<chunk_key> parent;
};

using entry_table = std::vector<pool_entry>;

/// Keeps entries in the order in which they would be evicted. Knows slots and
/// lists, not free slots or events.
///
/// Reads entries from the table it was made with. `count` of an entry is
/// already changed when a member is called for it.
class eviction_order {
public:
  virtual ~eviction_order() = default;

  /// A new entry, being written.
  virtual void inserted(slot_id slot) = 0;

  /// The entry goes because its store failed: no ghost stays.
  virtual void erased(slot_id slot) = 0;

  /// Nobody needs the entry any more; reference order.
  virtual void became_idle(slot_id slot) = 0;

  /// The same under R12: directly behind `newer` (as older) if given and in the
  /// same list, else to the newest end of its list.
  virtual void became_idle_behind(slot_id slot, std::optional<slot_id> newer)
    = 0;

  /// An idle entry got its first reader or promise.
  virtual void became_busy(slot_id slot) = 0;

  /// One access to a key that is present.
  virtual void touch(slot_id slot) = 0;

  /// One access to a key that is not.
  virtual void touch_absent(const chunk_key& key) = 0;

  /// Newest end of its own list; no access (R12).
  virtual void move_to_newest(slot_id slot) = 0;

  /// Takes `n` idle entries whose mark differs from `mark` out of the lists and
  /// appends their slots to `out` in the order of eviction.
  /// @returns false, with nothing changed, if there are not enough.
  virtual bool evict(std::size_t n, std::uint64_t mark,
                     std::vector<slot_id>& out)
    = 0;

  virtual void clear() = 0;

  /// Fills the lists of `out`.
  virtual void describe(pool_state& out) const = 0;
};

} // namespace kvtide::core
