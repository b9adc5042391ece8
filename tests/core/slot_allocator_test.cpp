// SPDX-License-Identifier: Apache-2.0

#include "core/slot_allocator.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <iterator>
#include <set>
#include <span>
#include <vector>

namespace kvtide::core {
namespace {

TEST(SlotAllocator, GivesUnusedSlotsFirstThenTheLastFreed) {
  auto uut = slot_allocator{3};
  EXPECT_EQ(uut.take(), 0u);
  EXPECT_EQ(uut.take(), 1u);
  uut.give_back(0);
  EXPECT_EQ(uut.take(), 2u);
  uut.give_back(1);
  EXPECT_EQ(uut.take(), 1u);
  EXPECT_EQ(uut.take(), 0u);
  EXPECT_EQ(uut.free(), 0u);
}

TEST(SlotAllocator, KeepsAQuarantinedSlotOutOfUseUntilItIsReleased) {
  auto uut = slot_allocator{1};
  uut.quarantine(uut.take());
  EXPECT_EQ(uut.free(), 0u);
  EXPECT_TRUE(uut.release(0));
  EXPECT_EQ(uut.free(), 1u);
  EXPECT_EQ(uut.take(), 0u);
}

TEST(SlotAllocator, IgnoresTheReleaseOfASlotThatIsInUseOrOutOfRange) {
  auto uut = slot_allocator{2};
  EXPECT_EQ(uut.take(), 0u);
  EXPECT_FALSE(uut.release(0));
  EXPECT_FALSE(uut.release(77));
  EXPECT_EQ(uut.free(), 1u);
}

TEST(SlotAllocator, CountsFromZeroAfterARestartButPassesRunningSlots) {
  auto uut = slot_allocator{3};
  EXPECT_EQ(uut.take(), 0u);
  EXPECT_EQ(uut.take(), 1u);
  uut.restart(std::array<slot_id, 1>{0});
  EXPECT_EQ(uut.free(), 2u);
  EXPECT_EQ(uut.take(), 1u);
  EXPECT_TRUE(uut.release(0));
  EXPECT_EQ(uut.take(), 2u);
  EXPECT_EQ(uut.take(), 0u);
}

TEST(SlotAllocator, KeepsWhatWasOutOfUseBeforeARestart) {
  auto uut = slot_allocator{2};
  uut.quarantine(uut.take());
  uut.restart({});
  EXPECT_EQ(uut.quarantined(), 1u);
  EXPECT_EQ(uut.take(), 1u);
  uut.clear();
  EXPECT_EQ(uut.quarantined(), 0u);
  EXPECT_EQ(uut.take(), 0u);
}

TEST(SlotAllocator, RestartsAroundWhatStaysTaken) {
  auto uut = slot_allocator{6};
  for (auto i = 0; i < 5; ++i)
    (void)uut.take();
  uut.quarantine(4);
  uut.restart(std::array<slot_id, 1>{0}, std::array<slot_id, 2>{1, 3});
  EXPECT_EQ(uut.free(), 2u);
  EXPECT_EQ(uut.quarantined(), 2u);
  EXPECT_EQ(uut.take(), 5u) << "never used, and 4 is passed over";
  EXPECT_EQ(uut.take(), 2u);
  EXPECT_EQ(uut.free(), 0u);
  EXPECT_TRUE(uut.release(0));
  EXPECT_EQ(uut.take(), 0u);
  uut.give_back(3);
  EXPECT_EQ(uut.take(), 3u);
  EXPECT_TRUE(uut.release(4));
  EXPECT_EQ(uut.take(), 4u);
}

// R9: loads may share the slots that they read.
TEST(SlotAllocator, KeepsASlotOutOfUseUntilEachJobHasReleasedIt) {
  auto uut = slot_allocator{2};
  const auto slot = uut.take();
  uut.restart(std::vector<slot_id>{slot, slot, slot});
  EXPECT_EQ(uut.quarantined(), 1u);
  EXPECT_FALSE(uut.release(slot));
  // Those two are still there at the next restart, nobody else is.
  uut.restart(std::vector<slot_id>{slot, slot});
  EXPECT_FALSE(uut.release(slot));
  EXPECT_EQ(uut.free(), 1u);
  EXPECT_TRUE(uut.release(slot));
  EXPECT_EQ(uut.free(), 2u);
}

RC_GTEST_PROP(SlotAllocator, NeverOwnsASlotTwiceNorLosesOne, ()) {
  constexpr auto slots = std::size_t{6};
  auto uut = slot_allocator{slots};
  auto taken = std::set<slot_id>{};
  auto quarantined = std::set<slot_id>{};
  const auto turns = *rc::gen::inRange(0, 80);
  for (auto turn = 0; turn < turns; ++turn) {
    switch (*rc::gen::inRange(0, 6)) {
      case 0: {
        if (taken.empty())
          break;
        const auto slot = *rc::gen::elementOf(taken);
        uut.give_back(slot);
        taken.erase(slot);
        break;
      }
      case 1: {
        if (taken.empty())
          break;
        const auto slot = *rc::gen::elementOf(taken);
        uut.quarantine(slot);
        taken.erase(slot);
        quarantined.insert(slot);
        break;
      }
      case 2: {
        const auto slot = *rc::gen::inRange<slot_id>(0, slots);
        RC_ASSERT(uut.release(slot) == (quarantined.erase(slot) > 0));
        break;
      }
      case 3: {
        if (turn % 5 != 0)
          break;
        const auto running = std::vector<slot_id>(taken.begin(), taken.end());
        const auto stays = *rc::gen::inRange<std::size_t>(0, taken.size() + 1);
        const auto kept = std::vector<slot_id>(
          taken.begin(), std::next(taken.begin(), static_cast<long>(stays)));
        uut.restart(std::span{running}.subspan(stays), kept);
        quarantined.insert(running.begin() + static_cast<long>(stays),
                           running.end());
        taken = {kept.begin(), kept.end()};
        break;
      }
      default: {
        if (uut.free() == 0)
          break;
        const auto slot = uut.take();
        RC_ASSERT(slot < slots);
        RC_ASSERT(quarantined.count(slot) == 0u);
        RC_ASSERT(taken.insert(slot).second);
        break;
      }
    }
    RC_ASSERT(uut.free() + taken.size() + quarantined.size() == slots);
    RC_ASSERT(uut.quarantined() == quarantined.size());
  }
}

} // namespace
} // namespace kvtide::core
