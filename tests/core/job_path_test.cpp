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
  EXPECT_TRUE(uut.may_be_known(9)) << "another life of this rank had it";
  uut.begin_step();
  EXPECT_TRUE(uut.take(4));
  EXPECT_TRUE(uut.may_be_known(4));
  // It may have gone to another life of this rank.
  EXPECT_TRUE(uut.may_be_known(3));
  EXPECT_FALSE(uut.may_be_known(5));
  uut.begin_step();
  EXPECT_TRUE(uut.may_be_known(4));
}

} // namespace
} // namespace kvtide::core
