// SPDX-License-Identifier: Apache-2.0

#include "core/scheduler_checks.hpp"
#include "tests/core/breach_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::core {
namespace {

// A copy may hang for ever: what is kept by job id would grow with the ids
// behind it.
TEST(SchedulerChecks, AJobWhoseCopyIsLateIsForgottenWithItsOutcome) {
  breach_list list;
  scheduler_checks uut{list.log, 1, true};
  auto late = tracked_job{};
  late.work.id = 4;
  late.late = 1;
  late.first_failed_row = 0;
  uut.job_started(late.work);
  uut.rank_reported(4, 0, job_status::done);
  uut.job_settled(late);
  EXPECT_THAT(list.take(), IsEmpty());
  uut.outcomes.took_effect(4, true);
  EXPECT_THAT(list.take(),
              ElementsAre("S9 a job was published that some rank did not do: "
                          "job 4, done by 0 of 1 ranks"));
}

} // namespace
} // namespace kvtide::core
