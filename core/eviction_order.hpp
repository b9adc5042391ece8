// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the pool asks of an eviction policy.

#pragma once

#include "kvtide/ids.hpp"

#include "core/key_list.hpp"
#include "core/pool_entry.hpp"
#include "core/pool_state.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kvtide::core {

/// Which entries must stay while room is made.
struct protection {
  /// Entries with this mark.
  std::uint64_t mark = 0;
  /// Entries of this request, one view per group; may be empty.
  std::span<const key_view> keys;

  [[nodiscard]] bool covers(const pool_entry& entry) const noexcept {
    if (entry.mark == mark)
      return true;
    if (entry.key.group >= keys.size())
      return false;
    const auto& view = keys[entry.key.group];
    return entry.chunk < view.size()
        && view.hash(entry.chunk) == entry.key.hash;
  }
};

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

  /// It remembers keys that are absent.
  [[nodiscard]] virtual bool has_ghosts() const noexcept = 0;

  /// It remembers that this key, which is absent, was evicted.
  [[nodiscard]] virtual bool remembers(const key_ref& key) const = 0;

  /// One access to a key that is not.
  virtual void touch_absent(const key_ref& key) = 0;

  /// Newest end of its own list; no access (R12).
  virtual void move_to_newest(slot_id slot) = 0;

  /// Appends up to `n` idle entries that are not protected to `out`, in the
  /// order in which they would go. Fewer if there are not enough. Asking for
  /// less gives the beginning of the same list.
  virtual void pick(std::size_t n, const protection& keep,
                    std::vector<slot_id>& out) const = 0;

  /// Takes entries out of the lists that `pick` named, in its order.
  virtual void evict(std::span<const slot_id> slots) = 0;

  virtual void clear() = 0;

  /// Fills the lists of `out`.
  virtual void describe(pool_state& out) const = 0;
};

} // namespace kvtide::core
