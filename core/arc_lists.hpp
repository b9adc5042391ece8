// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/eviction_order.hpp"
#include "core/linked_keys.hpp"
#include "core/slot_list.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace kvtide::core {

/// Adaptive replacement cache (C12): T1 has entries that were accessed
/// once, T2 those accessed again, both whatever their count is; B1 and B2
/// remember keys that were evicted from them.
class arc_lists final : public eviction_order {
public:
  /// `entries` must outlive the lists.
  /// @param capacity number of slots
  /// @param fall_back whether T1 serves when T2 has nothing idle (R6)
  arc_lists(const entry_table& entries, std::size_t capacity, bool fall_back);

  void inserted(slot_id slot) override;
  void erased(slot_id slot) override;
  void became_idle(slot_id slot) override;
  void became_idle_behind(slot_id slot, std::optional<slot_id> newer) override;
  void became_busy(slot_id slot) override;
  void touch(slot_id slot) override;
  [[nodiscard]] bool has_ghosts() const noexcept override {
    return b1_.size() + b2_.size() > 0;
  }
  [[nodiscard]] bool remembers(const key_ref& key) const override {
    return b1_.contains(key) || b2_.contains(key);
  }
  void touch_absent(const key_ref& key) override;
  void move_to_newest(slot_id slot) override;
  void pick(std::size_t n, const protection& keep,
            std::vector<slot_id>& out) const override;
  void evict(std::span<const slot_id> slots) override;
  void clear() override;
  void describe(pool_state& out) const override;

private:
  [[nodiscard]] slot_list& list_of(slot_id slot) noexcept {
    return t1_.contains(slot) ? t1_ : t2_;
  }

  [[nodiscard]] slot_id next_idle(const slot_list& list, slot_id from,
                                  const protection& keep) const;

  const entry_table& entries_;
  std::size_t capacity_;
  bool fall_back_;
  slot_list t1_;
  slot_list t2_;
  linked_keys b1_;
  linked_keys b2_;
  double target_ = 0;
};

} // namespace kvtide::core
