// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvtide::core {

/// Hands out the slots of the host pool: never-used ones first, ascending from
/// zero, then freed ones, last freed first. Keeps slots out of use that a copy
/// may still touch.
class slot_allocator {
public:
  explicit slot_allocator(std::size_t slots);

  /// @pre `free() > 0`
  [[nodiscard]] slot_id take();

  /// @pre `slot` was taken
  void give_back(slot_id slot);

  /// Instead of `give_back`: out of use until `release`.
  /// @pre `slot` was taken
  void quarantine(slot_id slot);

  /// One job less touches the slot.
  /// @returns true if that was the last one, and the slot can be handed out
  bool release(slot_id slot);

  /// Slots in `taken` stay taken; of the others those up to the last one of
  /// these are free, lowest first, and the rest count as never used again.
  /// Those out of use stay so, and those in `running` join them until each job
  /// has released them; slots out of range are ignored.
  /// @param running slots of all jobs in flight, once per job that touches them
  /// @param taken ascending; none in `running` or out of use
  void restart(std::span<const slot_id> running,
               std::span<const slot_id> taken = {});

  /// As if new.
  void clear();

  [[nodiscard]] std::size_t free() const noexcept {
    return slots_ - taken_ - quarantined_;
  }

  [[nodiscard]] std::size_t quarantined() const noexcept {
    return quarantined_;
  }

  [[nodiscard]] std::size_t slots() const noexcept {
    return slots_;
  }

private:
  void mark_out_of_use(slot_id slot, std::uint32_t jobs);

  std::size_t slots_;
  /// Slots below were used, or are out of use and were passed over.
  std::size_t next_unused_ = 0;
  std::vector<slot_id> freed_;
  /// By slot: jobs that keep it out of use; short if only low slots ever were.
  std::vector<std::uint32_t> out_of_use_;
  std::size_t quarantined_ = 0;
  std::size_t taken_ = 0;
};

} // namespace kvtide::core
