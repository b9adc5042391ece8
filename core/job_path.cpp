// SPDX-License-Identifier: Apache-2.0

#include "core/job_path.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::core {

void job_path::begin_step() {
  std::swap(last_, this_);
  this_.floor = highest_;
  this_.ids.clear();
}

bool job_path::take(job_id id, job_kind kind) {
  // A load that was overtaken has an id of the step before.
  const auto overtaken = kind == job_kind::load && !this_.may_have(id);
  auto& of = overtaken ? last_ : this_;
  if (!of.may_have(id))
    return false;
  auto& ids = of.ids;
  const auto place = std::lower_bound(ids.begin(), ids.end(), id);
  if (place != ids.end() && *place == id)
    return false;
  ids.insert(place, id);
  lowest_ = lowest_ ? std::min(*lowest_, id) : id;
  highest_ = highest_ ? std::max(*highest_, id) : id;
  return true;
}

} // namespace kvtide::core
