// SPDX-License-Identifier: Apache-2.0

#include "core/arc_lists.hpp"
#include "tests/core/pool_keys.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kvtide::core {
namespace {

using names = std::vector<std::string>;

class ArcLists : public ::testing::Test {
protected:
  /// Idle entries 0 to n-1 in T1 with their number as hash, oldest first.
  void fill(eviction_order& uut, slot_id n) {
    entries.resize(n);
    for (slot_id slot = 0; slot < n; ++slot) {
      entries[slot].key = named_key(std::to_string(slot));
      entries[slot].count = pool_entry::idle;
      uut.inserted(slot);
    }
  }

  static pool_state::arc_state lists(const arc_lists& uut) {
    auto out = pool_state{};
    uut.describe(out);
    return *out.arc;
  }

  static std::vector<slot_id> pick(const arc_lists& uut, std::size_t n) {
    auto out = std::vector<slot_id>{};
    uut.pick(n, {1, {}}, out);
    return out;
  }

  entry_table entries;
  arc_lists strict{entries, 4, false};
  arc_lists lenient{entries, 4, true};
};

TEST_F(ArcLists, PromoteAnEntryAtItsSecondAccessUnlessItIsBeingWritten) {
  fill(strict, 3);
  entries[1].count = pool_entry::writing;
  strict.touch(0);
  strict.touch(1);
  EXPECT_EQ(names_of(lists(strict).t1), (names{"2/0", "1/0"}));
  EXPECT_EQ(names_of(lists(strict).t2), (names{"0/0"}));
}

TEST_F(ArcLists, RememberWhatWasEvictedFromWhichList) {
  fill(strict, 3);
  strict.touch(2);
  strict.evict(std::vector<slot_id>{0, 2});
  EXPECT_EQ(names_of(lists(strict).b1), (names{"0/0"}));
  EXPECT_EQ(names_of(lists(strict).b2), (names{"2/0"}));
}

TEST_F(ArcLists, HaveGhostsOnceAnEntryWasEvictedFromEitherList) {
  fill(strict, 2);
  fill(lenient, 2);
  EXPECT_FALSE(strict.has_ghosts());
  strict.evict(std::vector<slot_id>{0});
  EXPECT_TRUE(strict.has_ghosts());
  lenient.touch(1);
  lenient.evict(std::vector<slot_id>{1});
  EXPECT_TRUE(lenient.has_ghosts());
}

TEST_F(ArcLists, MoveTheTargetAtGhostsOfEitherSide) {
  fill(strict, 4);
  strict.touch(3);
  strict.evict(std::vector<slot_id>{0, 1, 3});
  strict.touch_absent(named_key("0"));
  EXPECT_EQ(lists(strict).target, 1.0);
  EXPECT_EQ(names_of(lists(strict).b1), (names{"1/0", "0/0"}));
  strict.touch_absent(named_key("3"));
  EXPECT_EQ(lists(strict).target, 0.0);
  strict.touch_absent(named_key("unknown"));
  EXPECT_EQ(lists(strict).target, 0.0);
}

TEST_F(ArcLists, R6FallBackToT1WhenT2HasNothingIdle) {
  for (auto* uut : {&strict, &lenient}) {
    fill(*uut, 3);
    uut->touch(0);
    uut->evict(std::vector<slot_id>{1});
    // The target is now above the size of T1, which is 1.
    for (auto turn = 0; turn < 3; ++turn)
      uut->touch_absent(named_key("1"));
  }
  entries[0].count = 1;
  EXPECT_TRUE(pick(strict, 1).empty());
  EXPECT_EQ(pick(lenient, 1), (std::vector<slot_id>{2}));
}

TEST_F(ArcLists, PickTheSameBeginningWhenAskedForLess) {
  fill(lenient, 4);
  lenient.touch(0);
  lenient.touch(1);
  const auto all = pick(lenient, 4);
  ASSERT_EQ(all.size(), 4u);
  for (std::size_t n = 0; n < all.size(); ++n)
    EXPECT_EQ(
      pick(lenient, n),
      (std::vector<slot_id>(all.begin(), all.begin() + static_cast<long>(n))));
}

TEST_F(ArcLists, TurnToT2OnceT1IsSmallerThanTheTarget) {
  fill(strict, 4);
  strict.touch(3);
  strict.evict(std::vector<slot_id>{2});
  strict.touch_absent(named_key("2"));
  // T1 is {0, 1}, T2 is {3}, the target is 1.
  EXPECT_EQ(lists(strict).target, 1.0);
  strict.touch_absent(named_key("2"));
  EXPECT_EQ(lists(strict).target, 2.0);
  EXPECT_EQ(pick(strict, 2), (std::vector<slot_id>{0, 3}));
}

TEST_F(ArcLists, R12MoveAnEntryInsideItsOwnListOnly) {
  fill(lenient, 4);
  lenient.touch(0);
  lenient.became_idle_behind(1, 3);
  EXPECT_EQ(names_of(lists(lenient).t1), (names{"2/0", "1/0", "3/0"}));
  lenient.became_idle_behind(2, 0);
  EXPECT_EQ(names_of(lists(lenient).t1), (names{"1/0", "3/0", "2/0"}));
  lenient.move_to_newest(1);
  EXPECT_EQ(names_of(lists(lenient).t1), (names{"3/0", "2/0", "1/0"}));
  EXPECT_EQ(names_of(lists(lenient).t2), (names{"0/0"}));
}

TEST_F(ArcLists, LeaveNoGhostOfAFailedStore) {
  fill(strict, 2);
  strict.erased(0);
  EXPECT_EQ(names_of(lists(strict).t1), (names{"1/0"}));
  EXPECT_TRUE(lists(strict).b1.empty());
}

} // namespace
} // namespace kvtide::core
