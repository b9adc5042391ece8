// SPDX-License-Identifier: Apache-2.0

#include "core/lru_list.hpp"
#include "tests/core/pool_keys.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kvtide::core {
namespace {

using names = std::vector<std::string>;

class LruList : public ::testing::Test {
protected:
  /// Idle entries 0 to n-1 with their number as hash, oldest first.
  void fill(slot_id n) {
    entries.resize(n);
    for (slot_id slot = 0; slot < n; ++slot) {
      entries[slot].key = named_key(std::to_string(slot));
      entries[slot].count = pool_entry::idle;
      uut.became_idle(slot);
    }
  }

  names order() {
    auto out = pool_state{};
    uut.describe(out);
    return names_of(*out.lru);
  }

  std::vector<slot_id> pick(std::size_t n, const protection& keep = {1, {}}) {
    auto out = std::vector<slot_id>{};
    uut.pick(n, keep, out);
    return out;
  }

  entry_table entries;
  lru_list uut{entries};
};

TEST_F(LruList, PicksFromTheOldestAndPassesProtectedEntries) {
  fill(4);
  entries[1].mark = 1;
  EXPECT_EQ(pick(2), (std::vector<slot_id>{0, 2}));
  EXPECT_EQ(pick(9), (std::vector<slot_id>{0, 2, 3}));
}

TEST_F(LruList, PicksNoEntryOfAProtectedRequest) {
  fill(3);
  entries[1].chunk = 1;
  const auto keys
    = std::vector{view_of(std::vector<std::string>{"0", "1", "x"})};
  EXPECT_EQ(pick(9, {1, keys}), (std::vector<slot_id>{2}));
}

TEST_F(LruList, ForgetsWhatBecameBusyOrWasEvicted) {
  fill(4);
  uut.became_busy(1);
  uut.evict(std::vector<slot_id>{0});
  EXPECT_EQ(order(), (names{"2/0", "3/0"}));
}

TEST_F(LruList, PutsAKeyDirectlyBehindItsPredecessor) {
  fill(3);
  uut.became_busy(0);
  uut.became_idle_behind(0, 2);
  EXPECT_EQ(order(), (names{"1/0", "0/0", "2/0"}));
}

TEST_F(LruList, PutsAKeyAtTheNewestEndWithoutAPredecessorInTheList) {
  fill(3);
  uut.became_busy(0);
  uut.became_busy(1);
  uut.became_idle_behind(1, 0);
  uut.became_idle_behind(0, std::nullopt);
  EXPECT_EQ(order(), (names{"2/0", "1/0", "0/0"}));
}

TEST_F(LruList, TouchesOnlyIdleEntries) {
  fill(3);
  uut.became_busy(0);
  uut.touch(0);
  uut.touch(1);
  EXPECT_EQ(order(), (names{"2/0", "1/0"}));
}

} // namespace
} // namespace kvtide::core
