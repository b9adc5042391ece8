// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include "core/order_log.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvtide::core {

/// Checks that no copy gets a host slot that another one may still touch, where
/// a store is one of the two (S8).
class slot_check {
public:
  explicit slot_check(order_log& log) : log_(log) {
    // nop
  }

  /// Asks memory for what the next fact of this slot will read.
  void expect(slot_id slot) const noexcept {
    if (slot < slots_.size())
      __builtin_prefetch(&slots_[slot], 1);
  }

  /// A job was given the slots of its rows.
  void started(const job& work);

  /// No copy of this job touches its slots any more.
  void ended(const job& work);

private:
  struct use {
    std::uint32_t reads = 0;
    std::uint32_t writes = 0;
    /// The latest that touches it.
    job_id by = 0;
  };

  use& at(slot_id slot) {
    if (slot >= slots_.size())
      make_room_for(slot);
    return slots_[slot];
  }

  // Off the path that every job takes.
  [[gnu::cold]] void make_room_for(slot_id slot);
  [[gnu::cold]] void complain(slot_id slot, job_id next, job_id last);

  order_log& log_;
  std::vector<use> slots_;
};

} // namespace kvtide::core
