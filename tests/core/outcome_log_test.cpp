// SPDX-License-Identifier: Apache-2.0

#include "core/outcome_log.hpp"

#include <gtest/gtest.h>

namespace kvtide::core {
namespace {

TEST(OutcomeLog, S9KeepsTheFirstOutcomeOfAJob) {
  outcome_log uut;
  EXPECT_EQ(uut.find(3), nullptr);
  uut.note(3, {job_status::failed, 2});
  uut.note(3, {job_status::done, 0});
  ASSERT_NE(uut.find(3), nullptr);
  EXPECT_EQ(uut.find(3)->status, job_status::failed);
  EXPECT_EQ(uut.find(3)->first_failed_row, 2u);
}

TEST(OutcomeLog, ForgetsWhatNobodyAsksFor) {
  outcome_log uut;
  for (job_id id = 0; id < 10; ++id)
    uut.note(id, {});
  uut.forget_below(8);
  EXPECT_EQ(uut.size(), 2u);
  EXPECT_EQ(uut.find(7), nullptr);
  EXPECT_NE(uut.find(8), nullptr);
}

} // namespace
} // namespace kvtide::core
