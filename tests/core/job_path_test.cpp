// SPDX-License-Identifier: Apache-2.0

#include "core/job_path.hpp"

#include <gtest/gtest.h>

namespace kvtide::core {
namespace {

constexpr auto load = job_kind::load;
constexpr auto store = job_kind::store;

TEST(JobPath, S4TakesEachIdOnceInAnyOrderInsideAStep) {
  job_path uut;
  uut.begin_step();
  EXPECT_TRUE(uut.take(4, store));
  EXPECT_TRUE(uut.take(2, store));
  EXPECT_FALSE(uut.take(4, store));
  EXPECT_TRUE(uut.take(3, store));
  EXPECT_FALSE(uut.take(2, store));
}

TEST(JobPath, S12TakesNoIdOfAnEarlierStep) {
  job_path uut;
  uut.begin_step();
  EXPECT_TRUE(uut.take(4, store));
  uut.begin_step();
  EXPECT_FALSE(uut.take(4, store));
  EXPECT_FALSE(uut.take(3, store));
  EXPECT_TRUE(uut.take(5, store));
}

TEST(JobPath, S13TakesALoadThatATailHasOvertaken) {
  job_path uut;
  uut.begin_step();
  EXPECT_TRUE(uut.take(1, store));
  uut.begin_step();
  EXPECT_TRUE(uut.take(4, store)); // A tail, planned before the next step.
  uut.begin_step();
  EXPECT_FALSE(uut.take(1, load));
  EXPECT_FALSE(uut.take(3, store));
  EXPECT_TRUE(uut.take(3, load));
  EXPECT_FALSE(uut.take(3, load));
  EXPECT_FALSE(uut.take(4, load));
  EXPECT_TRUE(uut.take(5, load));
  uut.begin_step();
  EXPECT_FALSE(uut.take(2, load)) << "it should have come before";
}

TEST(JobPath, S4KnowsWhichIdsNobodyCanWaitFor) {
  job_path uut;
  EXPECT_FALSE(uut.may_be_known(9));
  uut.begin_step();
  EXPECT_TRUE(uut.take(4, store));
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
  EXPECT_TRUE(uut.take(7, store)); // A flushed store travels ahead.
  EXPECT_TRUE(uut.take(5, store));
  EXPECT_TRUE(uut.is_older(4));
  EXPECT_FALSE(uut.is_older(5));
  EXPECT_FALSE(uut.is_older(8));
}

} // namespace
} // namespace kvtide::core
