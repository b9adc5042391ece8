// SPDX-License-Identifier: Apache-2.0

#include "core/outcome_check.hpp"
#include "tests/core/breach_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::core {
namespace {

TEST(OutcomeCheck, S9OnlyWhatAllRanksDidIsPublished) {
  breach_list list;
  outcome_check uut{list.log, 2};
  uut.started(4);
  uut.rank_done(4, 1);
  uut.took_effect(4, true);
  EXPECT_THAT(list.take(),
              ElementsAre("S9 a job was published that some rank did not do: "
                          "job 4, done by 1 of 2 ranks"));
  uut.rank_done(4, 0);
  uut.took_effect(4, true);
  EXPECT_THAT(list.take(), IsEmpty());
}

TEST(OutcomeCheck, S9AFailedJobNeedsNoRank) {
  breach_list list;
  outcome_check uut{list.log, 2};
  uut.started(4);
  uut.took_effect(4, false);
  EXPECT_THAT(list.take(), IsEmpty());
}

TEST(OutcomeCheck, S9AJobHasOneOutcome) {
  breach_list list;
  outcome_check uut{list.log, 1};
  uut.started(4);
  uut.settled(4);
  EXPECT_THAT(list.take(), IsEmpty());
  uut.settled(4);
  uut.erased(4);
  uut.settled(4);
  EXPECT_THAT(list.take(), ElementsAre("S9 a job had a second outcome: job 4",
                                       "S9 a job had a second outcome: job 4"));
}

TEST(OutcomeCheck, S11AJobFromBeforeAResetHasNoEffect) {
  breach_list list;
  outcome_check uut{list.log, 1};
  uut.started(4);
  uut.reset(5);
  uut.took_effect(4, false);
  EXPECT_THAT(list.take(),
              ElementsAre("S11 a job from before a reset took effect: job 4; "
                          "the first one since is 5"));
  uut.started(5);
  uut.took_effect(5, false);
  EXPECT_THAT(list.take(), IsEmpty());
}

} // namespace
} // namespace kvtide::core
