// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/outage_log.hpp"

#include <gtest/gtest.h>

namespace kvtide::replay {
namespace {

TEST(OutageLog, KnowsNothingAtFirst) {
  auto uut = outage_log{};
  EXPECT_TRUE(uut.whole());
  uut.link_back(1, false); // It joins.
  uut.hit();
  EXPECT_TRUE(uut.all().empty());
}

TEST(OutageLog, EndsAnOutageWhenBothPartsAreBack) {
  auto uut = outage_log{};
  uut.link_lost(2);
  uut.process_lost(2);
  uut.link_back(2, true);
  EXPECT_FALSE(uut.whole());
  EXPECT_FALSE(uut.all()[0].back.has_value());
  uut.process_back(2, true);
  EXPECT_TRUE(uut.whole());
  ASSERT_EQ(uut.all().size(), 1u);
  const auto& what = uut.all()[0];
  EXPECT_EQ(what.rank, 2u);
  EXPECT_TRUE(what.process);
  EXPECT_TRUE(what.link);
  EXPECT_TRUE(what.same_life);
  ASSERT_TRUE(what.back.has_value());
  EXPECT_GE(*what.back, what.lost);
}

TEST(OutageLog, CountsAHitOnlyWhenAllAreBack) {
  auto uut = outage_log{};
  uut.link_lost(1);
  uut.process_lost(3);
  uut.link_back(1, true);
  uut.hit();
  EXPECT_FALSE(uut.all()[0].hit.has_value());
  uut.process_back(3, false);
  uut.hit();
  ASSERT_EQ(uut.all().size(), 2u);
  for (const auto& what : uut.all())
    EXPECT_TRUE(what.hit.has_value());
  EXPECT_FALSE(uut.all()[1].same_life);
  const auto first = uut.all()[0].hit;
  uut.hit();
  EXPECT_EQ(uut.all()[0].hit, first);
}

} // namespace
} // namespace kvtide::replay
