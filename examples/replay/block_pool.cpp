// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/block_pool.hpp"

#include <cassert>

namespace kvtide::replay {

block_pool::block_pool(std::uint32_t blocks) : slots_(std::size_t{blocks} + 1) {
  by_key_.reserve(blocks);
  for (auto block = block_id{1}; block <= blocks; ++block)
    link_behind(slots_[no_block].previous, block);
}

block_id block_pool::allocate() {
  assert(free_count_ > 0);
  const auto block = slots_[no_block].next;
  unlink(block);
  auto& what = slots_[block];
  what.users = 1;
  if (what.key != 0) {
    by_key_.erase(what.key);
    what.key = 0;
  }
  return block;
}

void block_pool::retain(block_id block) {
  assert(block != no_block);
  if (slots_[block].users++ == 0)
    unlink(block);
}

void block_pool::release(block_id block, reuse order) {
  assert(block != no_block && slots_[block].users > 0);
  if (--slots_[block].users > 0)
    return;
  // Nobody can find a block without a key, so nothing is lost by its reuse.
  const auto first = order == reuse::first || slots_[block].key == 0;
  link_behind(first ? no_block : slots_[no_block].previous, block);
}

void block_pool::publish(block_id block, std::uint64_t key) {
  assert(block != no_block && key != 0 && slots_[block].users > 0);
  if (slots_[block].key == 0 && by_key_.try_emplace(key, block).second)
    slots_[block].key = key;
}

block_id block_pool::find(std::uint64_t key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? no_block : found->second;
}

void block_pool::forget_contents() {
  by_key_.clear();
  for (auto& what : slots_)
    what.key = 0;
}

void block_pool::unlink(block_id block) {
  auto& what = slots_[block];
  slots_[what.previous].next = what.next;
  slots_[what.next].previous = what.previous;
  --free_count_;
}

void block_pool::link_behind(block_id place, block_id block) {
  const auto next = slots_[place].next;
  slots_[block].previous = place;
  slots_[block].next = next;
  slots_[place].next = block;
  slots_[next].previous = block;
  ++free_count_;
}

} // namespace kvtide::replay
