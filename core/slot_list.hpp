// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <cassert>
#include <cstddef>
#include <limits>
#include <vector>

namespace kvtide::core {

/// A doubly linked list of slots from the oldest to the newest. The links lie
/// in one array by slot, so every change is O(1) and allocates nothing once the
/// array has grown.
class slot_list {
public:
  /// Ends an iteration.
  static constexpr slot_id none = std::numeric_limits<slot_id>::max();

  [[nodiscard]] bool contains(slot_id slot) const noexcept {
    return slot < links_.size() && links_[slot].linked;
  }

  [[nodiscard]] std::size_t size() const noexcept {
    return size_;
  }

  /// `none` if empty.
  [[nodiscard]] slot_id oldest() const noexcept {
    return oldest_;
  }

  /// The next newer slot, or `none`.
  /// @pre `contains(slot)`
  [[nodiscard]] slot_id newer(slot_id slot) const noexcept {
    assert(contains(slot));
    return links_[slot].newer;
  }

  /// @pre `!contains(slot)`
  void push_newest(slot_id slot) {
    insert(slot, newest_, none);
  }

  /// Puts `slot` directly before `than`, as older.
  /// @pre `!contains(slot)` and `contains(than)`
  void insert_older(slot_id slot, slot_id than) {
    assert(contains(than));
    insert(slot, links_[than].older, than);
  }

  /// @pre `contains(slot)`
  void erase(slot_id slot) noexcept {
    assert(contains(slot));
    auto& at = links_[slot];
    (at.older == none ? oldest_ : links_[at.older].newer) = at.newer;
    (at.newer == none ? newest_ : links_[at.newer].older) = at.older;
    at.linked = false;
    --size_;
  }

  /// @pre `contains(slot)`
  void move_to_newest(slot_id slot) {
    if (slot == newest_)
      return;
    erase(slot);
    push_newest(slot);
  }

  void clear() noexcept {
    links_.clear();
    oldest_ = none;
    newest_ = none;
    size_ = 0;
  }

private:
  struct link {
    slot_id older = none;
    slot_id newer = none;
    bool linked = false;
  };

  void insert(slot_id slot, slot_id older, slot_id newer) {
    assert(!contains(slot));
    if (slot >= links_.size())
      links_.resize(std::size_t{slot} + 1);
    links_[slot] = {older, newer, true};
    (older == none ? oldest_ : links_[older].newer) = slot;
    (newer == none ? newest_ : links_[newer].older) = slot;
    ++size_;
  }

  std::vector<link> links_;
  slot_id oldest_ = none;
  slot_id newest_ = none;
  std::size_t size_ = 0;
};

} // namespace kvtide::core
