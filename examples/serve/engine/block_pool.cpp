// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/engine/block_pool.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace serve {

using kvtide::block_id;
using kvtide::no_block;

block_pool::block_pool(std::uint32_t blocks) : slots_(std::size_t{blocks} + 1) {
  by_key_.reserve(blocks);
  for (auto block = block_id{1}; block <= blocks; ++block)
    link_behind(slots_[no_block].before, block);
}

block_id block_pool::allocate() {
  assert(free_ > 0);
  const auto block = slots_[no_block].behind;
  unlink(block);
  auto& what = slots_[block];
  what.users = 1;
  if (what.key.prefix.size() > 0)
    by_key_.erase(what.key);
  what.key = {};
  return block;
}

void block_pool::retain(block_id block) {
  assert(block != no_block);
  if (slots_[block].users++ == 0)
    unlink(block);
}

void block_pool::release(block_id block) {
  assert(block != no_block && slots_[block].users > 0);
  auto& what = slots_[block];
  if (--what.users > 0)
    return;
  // What nobody can find is no loss: it is handed out first.
  const auto last = slots_[no_block].before;
  link_behind(what.key.prefix.size() > 0 ? last : no_block, block);
}

void block_pool::publish(block_id block, const block_key& key) {
  assert(slots_[block].users > 0 && key.prefix.size() > 0);
  auto& what = slots_[block];
  if (what.key.prefix.size() == 0 && by_key_.try_emplace(key, block).second)
    what.key = key;
}

block_id block_pool::find(const block_key& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? no_block : found->second;
}

std::size_t block_pool::hash::operator()(const block_key& key) const noexcept {
  auto res = std::size_t{0}; // The prefix is a hash already.
  std::memcpy(&res, key.prefix.data(),
              std::min(sizeof(res), key.prefix.size()));
  return res + key.group;
}

void block_pool::unlink(block_id block) {
  auto& what = slots_[block];
  slots_[what.before].behind = what.behind;
  slots_[what.behind].before = what.before;
  --free_;
}

void block_pool::link_behind(block_id place, block_id block) {
  const auto next = slots_[place].behind;
  slots_[block].before = place;
  slots_[block].behind = next;
  slots_[place].behind = block;
  slots_[next].before = block;
  ++free_;
}

} // namespace serve
