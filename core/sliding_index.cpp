// SPDX-License-Identifier: Apache-2.0

#include "core/sliding_index.hpp"

#include <algorithm>

namespace kvtide::core {

void sliding_index::add(block_id block, const place& where) {
  if (block == no_block)
    return;
  places_[block].push_back(where);
  ++size_;
}

void sliding_index::remove(block_id block, request_id request, group_id group,
                           std::size_t position) {
  const auto i = places_.find(block);
  if (i == places_.end())
    return;
  auto& list = i.value();
  const auto j = std::find_if(list.begin(), list.end(), [&](const place& x) {
    return x.request == request && x.group == group && x.position == position;
  });
  if (j == list.end())
    return;
  list.erase(j);
  --size_;
  if (list.empty())
    places_.erase(i);
}

const std::vector<sliding_index::place>*
sliding_index::places(block_id block) const {
  const auto i = places_.find(block);
  return i != places_.end() ? &i->second : nullptr;
}

} // namespace kvtide::core
