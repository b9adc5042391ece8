// SPDX-License-Identifier: Apache-2.0

#include "core/slot_allocator.hpp"

#include <algorithm>
#include <cassert>
#include <map>

namespace kvtide::core {

slot_allocator::slot_allocator(std::size_t slots) : slots_(slots) {
  // nop
}

slot_id slot_allocator::take() {
  assert(free() > 0);
  ++taken_;
  while (next_unused_ < slots_) {
    const auto slot = static_cast<slot_id>(next_unused_++);
    if (slot >= out_of_use_.size() || out_of_use_[slot] == 0)
      return slot;
  }
  const auto slot = freed_.back();
  freed_.pop_back();
  return slot;
}

void slot_allocator::give_back(slot_id slot) {
  assert(taken_ > 0);
  --taken_;
  freed_.push_back(slot);
}

void slot_allocator::quarantine(slot_id slot) {
  assert(taken_ > 0);
  --taken_;
  mark_out_of_use(slot, 1);
}

bool slot_allocator::release(slot_id slot) {
  if (slot >= out_of_use_.size() || out_of_use_[slot] == 0
      || --out_of_use_[slot] > 0)
    return false;
  --quarantined_;
  if (slot < next_unused_)
    freed_.push_back(slot);
  return true;
}

void slot_allocator::restart(std::span<const slot_id> running,
                             std::span<const slot_id> taken) {
  next_unused_ = taken.empty() ? 0 : taken.back() + std::size_t{1};
  freed_.clear();
  taken_ = taken.size();
  // Who kept a slot out of use before and still does is in `running` again.
  auto jobs = std::map<slot_id, std::uint32_t>{};
  for (const auto slot : running)
    if (slot < slots_)
      ++jobs[slot];
  for (const auto& [slot, count] : jobs)
    mark_out_of_use(slot, count);
  for (auto slot = static_cast<slot_id>(next_unused_); slot-- > 0;)
    if (!std::binary_search(taken.begin(), taken.end(), slot)
        && (slot >= out_of_use_.size() || out_of_use_[slot] == 0))
      freed_.push_back(slot);
}

void slot_allocator::clear() {
  out_of_use_.clear();
  quarantined_ = 0;
  restart({});
}

void slot_allocator::mark_out_of_use(slot_id slot, std::uint32_t jobs) {
  if (slot >= out_of_use_.size())
    out_of_use_.resize(std::size_t{slot} + 1);
  if (out_of_use_[slot] == 0)
    ++quarantined_;
  out_of_use_[slot] = std::max(out_of_use_[slot], jobs);
}

} // namespace kvtide::core
