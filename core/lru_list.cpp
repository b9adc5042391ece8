// SPDX-License-Identifier: Apache-2.0

#include "core/lru_list.hpp"

namespace kvtide::core {

void lru_list::inserted(slot_id) {
  // Not idle, so not in the list.
}

void lru_list::erased(slot_id) {
  // Was being written, so not in the list.
}

void lru_list::became_idle(slot_id slot) {
  idle_.push_newest(slot);
}

void lru_list::became_idle_behind(slot_id slot, std::optional<slot_id> newer) {
  if (newer && idle_.contains(*newer))
    idle_.insert_older(slot, *newer);
  else
    idle_.push_newest(slot);
}

void lru_list::became_busy(slot_id slot) {
  idle_.erase(slot);
}

void lru_list::touch(slot_id slot) {
  move_to_newest(slot);
}

void lru_list::touch_absent(const key_ref&) {
  // No ghosts.
}

void lru_list::move_to_newest(slot_id slot) {
  if (idle_.contains(slot))
    idle_.move_to_newest(slot);
}

void lru_list::pick(std::size_t n, const protection& keep,
                    std::vector<slot_id>& out) const {
  for (auto at = idle_.oldest(); n > 0 && at != slot_list::none;
       at = idle_.newer(at)) {
    if (keep.covers(entries_[at]))
      continue;
    out.push_back(at);
    --n;
  }
}

void lru_list::evict(std::span<const slot_id> slots) {
  for (const auto slot : slots)
    idle_.erase(slot);
}

void lru_list::clear() {
  idle_.clear();
}

void lru_list::describe(pool_state& out) const {
  out.lru = keys_of(idle_, entries_);
}

} // namespace kvtide::core
