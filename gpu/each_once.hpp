// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <vector>

namespace kvtide::gpu {

/// The same ids, ascending and each once.
template <class Id>
[[nodiscard]] std::vector<Id> each_once(std::vector<Id> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

} // namespace kvtide::gpu
