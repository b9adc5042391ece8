// SPDX-License-Identifier: Apache-2.0

#include "core/device_check.hpp"
#include "tests/core/breach_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::core {
namespace {

TEST(DeviceCheck, S4AJobIsHandedOverBeforeAnybodyWaitsForIt) {
  breach_list list;
  device_check uut{list.log};
  uut.submitted({job_on(4, job_kind::store, {0})}, std::nullopt);
  uut.fenced(2, {1, 4}, std::nullopt);
  EXPECT_THAT(list.take(), IsEmpty());
  uut.fenced(3, {4, 5}, std::nullopt);
  EXPECT_THAT(list.take(),
              ElementsAre("S4 a job was waited for before it was handed over: "
                          "job 5 in the fence of step 3"));
}

TEST(DeviceCheck, S4JobsThatTheWorkerEndedAreNotMissed) {
  breach_list list;
  device_check uut{list.log};
  uut.fenced(2, {4}, job_id{4});
  EXPECT_THAT(list.take(), IsEmpty());
}

TEST(DeviceCheck, S6ComputeThatCopiesWaitForDoesNotGoBack) {
  breach_list list;
  device_check uut{list.log};
  uut.submitted({job_on(1, job_kind::load, {0})}, std::nullopt);
  uut.submitted({job_on(2, job_kind::load, {0})}, step_id{6});
  EXPECT_THAT(list.take(), IsEmpty());
  uut.submitted({job_on(3, job_kind::load, {0})}, step_id{5});
  EXPECT_THAT(list.take(),
              ElementsAre("S6 copies wait for compute of an earlier step: "
                          "those of job 3 for step 5 after step 6"));
  uut.submitted({job_on(4, job_kind::load, {0})}, std::nullopt);
  EXPECT_EQ(list.take().size(), 1u);
}

TEST(DeviceCheck, S6AFenceTellsWhichStepHasEnded) {
  breach_list list;
  device_check uut{list.log};
  uut.submitted({job_on(1, job_kind::store, {0})}, step_id{6});
  uut.fenced(8, {1}, std::nullopt);
  uut.submitted({job_on(2, job_kind::load, {0})}, step_id{6});
  EXPECT_EQ(list.take().size(), 1u) << "step 7 has ended";
}

} // namespace
} // namespace kvtide::core
