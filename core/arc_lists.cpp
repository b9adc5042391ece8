// SPDX-License-Identifier: Apache-2.0

#include "core/arc_lists.hpp"

#include "core/pool_entry.hpp"

#include <algorithm>
#include <cmath>

namespace kvtide::core {

namespace {

/// How far one hit in a ghost list moves the target.
double step_of(const linked_keys& other, const linked_keys& hit) {
  return std::max(1.0, static_cast<double>(other.size())
                         / static_cast<double>(hit.size()));
}

} // namespace

arc_lists::arc_lists(const entry_table& entries, std::size_t capacity,
                     bool fall_back)
  : entries_(entries), capacity_(capacity), fall_back_(fall_back) {
  // nop
}

void arc_lists::inserted(slot_id slot) {
  t1_.push_newest(slot);
  const auto& key = entries_[slot].key;
  b1_.erase(key);
  b2_.erase(key);
}

void arc_lists::erased(slot_id slot) {
  list_of(slot).erase(slot);
}

void arc_lists::became_idle(slot_id) {
  // Entries of any count are in the lists.
}

void arc_lists::became_idle_behind(slot_id slot, std::optional<slot_id> newer) {
  auto& list = list_of(slot);
  list.erase(slot);
  if (newer && list.contains(*newer))
    list.insert_older(slot, *newer);
  else
    list.push_newest(slot);
}

void arc_lists::became_busy(slot_id) {
  // Entries of any count are in the lists.
}

void arc_lists::touch(slot_id slot) {
  if (!t1_.contains(slot)) {
    t2_.move_to_newest(slot);
  } else if (entries_[slot].count == pool_entry::writing) {
    t1_.move_to_newest(slot);
  } else {
    t1_.erase(slot);
    t2_.push_newest(slot);
  }
}

void arc_lists::touch_absent(const key_ref& key) {
  if (b1_.contains(key)) {
    target_
      = std::min(target_ + step_of(b2_, b1_), static_cast<double>(capacity_));
    b1_.push_newest(key.get());
  } else if (b2_.contains(key)) {
    target_ = std::max(target_ - step_of(b1_, b2_), 0.0);
    b2_.push_newest(key.get());
  }
}

void arc_lists::move_to_newest(slot_id slot) {
  list_of(slot).move_to_newest(slot);
}

void arc_lists::pick(std::size_t n, const protection& keep,
                     std::vector<slot_id>& out) const {
  const auto target = std::floor(target_);
  auto virtual_t1 = static_cast<double>(t1_.size());
  auto from_t1 = next_idle(t1_, t1_.oldest(), keep);
  auto from_t2 = next_idle(t2_, t2_.oldest(), keep);
  const auto take_t1 = [&] {
    out.push_back(from_t1);
    from_t1 = next_idle(t1_, t1_.newer(from_t1), keep);
    virtual_t1 -= 1;
  };
  for (; n > 0; --n) {
    if (virtual_t1 >= target && from_t1 != slot_list::none) {
      take_t1();
    } else if (from_t2 != slot_list::none) {
      out.push_back(from_t2);
      from_t2 = next_idle(t2_, t2_.newer(from_t2), keep);
    } else if (fall_back_ && from_t1 != slot_list::none) { // R6
      take_t1();
    } else {
      return;
    }
  }
}

void arc_lists::evict(std::span<const slot_id> slots) {
  for (const auto slot : slots) {
    const auto first = t1_.contains(slot);
    (first ? t1_ : t2_).erase(slot);
    (first ? b1_ : b2_).push_newest(entries_[slot].key);
  }
  b1_.shorten(capacity_);
  b2_.shorten(capacity_);
}

void arc_lists::clear() {
  t1_.clear();
  t2_.clear();
  b1_.clear();
  b2_.clear();
  target_ = 0;
}

void arc_lists::describe(pool_state& out) const {
  out.arc
    = pool_state::arc_state{keys_of(t1_, entries_), keys_of(t2_, entries_),
                            b1_.keys(), b2_.keys(), target_};
}

slot_id arc_lists::next_idle(const slot_list& list, slot_id from,
                             const protection& keep) const {
  auto at = from;
  while (
    at != slot_list::none
    && (entries_[at].count != pool_entry::idle || keep.covers(entries_[at])))
    at = list.newer(at);
  return at;
}

} // namespace kvtide::core
