// SPDX-License-Identifier: Apache-2.0

#include "core/job_path.hpp"

#include <gtest/gtest.h>

namespace kvtide::core {
namespace {

TEST(JobPath, S4TakesEachIdOnceInAnyOrderInsideAStep) {
  job_path uut;
  uut.begin_step();
  EXPECT_TRUE(uut.take(4));
  EXPECT_TRUE(uut.take(2));
  EXPECT_FALSE(uut.take(4));
  EXPECT_TRUE(uut.take(3));
  EXPECT_FALSE(uut.take(2));
}

TEST(JobPath, S12TakesNoIdOfAnEarlierStep) {
  job_path uut;
  uut.begin_step();
  EXPECT_TRUE(uut.take(4));
  uut.begin_step();
  EXPECT_FALSE(uut.take(4));
  EXPECT_FALSE(uut.take(3));
  EXPECT_TRUE(uut.take(5));
}

TEST(JobPath, S4KnowsWhichIdsNobodyCanWaitFor) {
  job_path uut;
  EXPECT_FALSE(uut.may_be_known(9));
  uut.begin_step();
  EXPECT_TRUE(uut.take(4));
  EXPECT_TRUE(uut.may_be_known(4));
  EXPECT_TRUE(uut.may_be_known(3));
  EXPECT_FALSE(uut.may_be_known(5));
  uut.begin_step();
  EXPECT_TRUE(uut.may_be_known(4));
}

TEST(JobPath, S4KnowsWhichIdsAreOfAnEarlierLifeOfTheRank) {
  job_path uut;
  EXPECT_TRUE(uut.is_older(9)) << "nothing was planned for this life yet";
  uut.begin_step();
  EXPECT_TRUE(uut.take(7)); // A flushed store travels ahead.
  EXPECT_TRUE(uut.take(5));
  EXPECT_TRUE(uut.is_older(4));
  EXPECT_FALSE(uut.is_older(5));
  EXPECT_FALSE(uut.is_older(8));
}

} // namespace
} // namespace kvtide::core
