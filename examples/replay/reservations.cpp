// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/reservations.hpp"

#include <algorithm>

namespace kvtide::replay {

std::size_t reservations::add(request_id request,
                              const std::vector<block_id>& blocks) {
  if (blocks.empty())
    return 0;
  auto& mine = all_[request];
  const auto before = mine.size();
  for (const auto block : blocks)
    if (std::find(mine.begin(), mine.end(), block) == mine.end())
      mine.push_back(block);
  size_ += mine.size() - before;
  return mine.size() - before;
}

std::vector<block_id>
reservations::remove(request_id request, const std::vector<block_id>& blocks) {
  auto res = std::vector<block_id>{};
  const auto found = all_.find(request);
  if (found == all_.end())
    return res;
  auto& mine = found->second;
  for (const auto block : blocks)
    if (const auto at = std::find(mine.begin(), mine.end(), block);
        at != mine.end()) {
      mine.erase(at);
      res.push_back(block);
    }
  size_ -= res.size();
  if (mine.empty())
    all_.erase(found);
  return res;
}

} // namespace kvtide::replay
