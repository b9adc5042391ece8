// SPDX-License-Identifier: Apache-2.0

#include "core/life_check.hpp"
#include "tests/core/breach_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::core {
namespace {

TEST(LifeCheck, S2ARequestGoesAfterItsPlanAndItsLastJob) {
  breach_list list;
  life_check uut{list.log};
  uut.added(1);
  uut.job_started(1);
  uut.planned(1);
  uut.item_over();
  uut.job_settled(1);
  uut.dropped(1);
  uut.item_over();
  EXPECT_THAT(list.take(), IsEmpty());
}

TEST(LifeCheck, S2ARequestIsNotDroppedBeforeItsPlan) {
  breach_list list;
  life_check uut{list.log};
  uut.added(1);
  uut.dropped(1);
  EXPECT_THAT(list.take(), ElementsAre("S2 a request was dropped before its "
                                       "tail was planned: request 1"));
}

TEST(LifeCheck, S2ARequestIsNotDroppedWithAJob) {
  breach_list list;
  life_check uut{list.log};
  uut.added(1);
  uut.job_started(1);
  uut.planned(1);
  uut.dropped(1);
  EXPECT_THAT(list.take(),
              ElementsAre("S2 a request was dropped before its last job had an "
                          "outcome: request 1, jobs in flight: 1"));
}

TEST(LifeCheck, S2ARequestLivesNotAMessageLonger) {
  breach_list list;
  life_check uut{list.log};
  uut.added(1);
  uut.planned(1);
  uut.item_over();
  EXPECT_THAT(
    list.take(),
    ElementsAre("S2 requests that are over were not dropped: 1 of them"));
  uut.item_over();
  EXPECT_THAT(list.take(), IsEmpty()) << "told once";
  uut.dropped(1);
  uut.added(1);
  uut.planned(1);
  uut.item_over();
  EXPECT_EQ(list.take().size(), 1u);
}

TEST(LifeCheck, S2AResetEndsFinishedRequestsAndAllJobs) {
  breach_list list;
  life_check uut{list.log};
  uut.added(1);
  uut.job_started(1);
  uut.added(2);
  uut.job_started(2);
  uut.planned(2);
  uut.reset();
  uut.forgotten(2);
  uut.item_over();
  uut.planned(1);
  uut.dropped(1);
  uut.item_over();
  EXPECT_THAT(list.take(), IsEmpty());
}

} // namespace
} // namespace kvtide::core
