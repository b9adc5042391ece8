// SPDX-License-Identifier: Apache-2.0

#include "core/slot_check.hpp"

#include <string>

namespace kvtide::core {

void slot_check::started(const job& work) {
  const auto stores = work.kind == job_kind::store;
  for (const auto& row : work.rows) {
    auto& slot = at(row.slot);
    if (slot.writes > 0 || (stores && slot.reads > 0))
      complain(row.slot, work.id, slot.by);
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

void slot_check::complain(slot_id slot, job_id next, job_id last) {
  log_.breach(order_rule::s8, "a slot was handed out that a copy may touch",
              "slot " + std::to_string(slot) + " for job "
                + std::to_string(next) + ", but job " + std::to_string(last)
                + " has not ended");
}

void slot_check::make_room_for(slot_id slot) {
  slots_.resize(slot + std::size_t{1});
}

} // namespace kvtide::core
