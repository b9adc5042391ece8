// SPDX-License-Identifier: Apache-2.0

#include "core/job_path.hpp"

#include <algorithm>

namespace kvtide::core {

bool job_path::take(job_id id) {
  if (floor_ && id <= *floor_)
    return false;
  const auto place = std::lower_bound(step_.begin(), step_.end(), id);
  if (place != step_.end() && *place == id)
    return false;
  step_.insert(place, id);
  lowest_ = lowest_ ? std::min(*lowest_, id) : id;
  highest_ = highest_ ? std::max(*highest_, id) : id;
  return true;
}

} // namespace kvtide::core
