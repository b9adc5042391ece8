// SPDX-License-Identifier: Apache-2.0

#include "core/slot_check.hpp"

#include <string>

namespace kvtide::core {

void slot_check::started(const job& work) {
  const auto stores = work.kind == job_kind::store;
  for (const auto& row : work.rows) {
    auto& slot = at(row.slot);
    if (slot.writes > 0 || (stores && slot.reads > 0))
      log_.breach(order_rule::s8, "a slot was handed out that a copy may touch",
                  "slot " + std::to_string(row.slot) + " for job "
                    + std::to_string(work.id) + ", but job "
                    + std::to_string(slot.by) + " has not ended");
    (stores ? slot.writes : slot.reads) += 1;
    slot.by = work.id;
  }
}

void slot_check::ended(const job& work) {
  const auto stores = work.kind == job_kind::store;
  for (const auto& row : work.rows) {
    auto& slot = at(row.slot);
    auto& users = stores ? slot.writes : slot.reads;
    users -= users > 0;
  }
}

} // namespace kvtide::core
