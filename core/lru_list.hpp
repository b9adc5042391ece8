// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/eviction_order.hpp"
#include "core/pool_entry.hpp"
#include "core/slot_list.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace kvtide::core {

/// Least recently used (C11). Only idle entries are in the list.
class lru_list final : public eviction_order {
public:
  /// `entries` must outlive the list.
  explicit lru_list(const entry_table& entries) : entries_(entries) {
    // nop
  }

  void inserted(slot_id slot) override;
  void erased(slot_id slot) override;
  void became_idle(slot_id slot) override;
  void became_idle_behind(slot_id slot, std::optional<slot_id> newer) override;
  void became_busy(slot_id slot) override;
  void touch(slot_id slot) override;
  [[nodiscard]] bool has_ghosts() const noexcept override {
    return false;
  }
  [[nodiscard]] bool remembers(const key_ref&) const override {
    return false;
  }
  void touch_absent(const key_ref& key) override;
  void move_to_newest(slot_id slot) override;
  void pick(std::size_t n, const protection& keep,
            std::vector<slot_id>& out) const override;
  void evict(std::span<const slot_id> slots) override;
  void clear() override;
  void describe(pool_state& out) const override;

private:
  const entry_table& entries_;
  slot_list idle_;
};

} // namespace kvtide::core
