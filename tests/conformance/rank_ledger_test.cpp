// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/rank_ledger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace kvtide::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

job make_job(job_id id, job_kind kind) {
  return {id, kind, 0, std::vector<job_row>{{chunk_key{}, 3, 0, {7}}}};
}

job store(job_id id) {
  return make_job(id, job_kind::store);
}

job load(job_id id) {
  return make_job(id, job_kind::load);
}

class RankLedger : public ::testing::Test {
protected:
  void submit(std::vector<job> jobs, std::vector<job_id> after = {}) {
    uut.take({msg::submit_jobs{std::move(jobs), std::move(after), events}});
  }

  void wait(std::vector<job_id> jobs) {
    uut.take({msg::make_fence{step, std::move(jobs)}});
  }

  /// Ends a step and begins the next one.
  std::vector<std::string> check(std::vector<job> loads,
                                 std::vector<job> stores,
                                 std::vector<job_id> flush) {
    auto plan = step_plan{};
    plan.step = step;
    plan.loads = std::move(loads);
    plan.stores = std::move(stores);
    plan.flush = std::move(flush);
    uut.check_step(plan);
    ++step;
    return uut.take_complaints();
  }

  rank_ledger uut{0};
  compute_events events;
  step_id step = 1;
};

TEST_F(RankLedger, AcceptsWhatTheRulesAskFor) {
  EXPECT_THAT(check({}, {store(0)}, {}), IsEmpty());
  submit({store(0), store(1)});
  wait({0, 1, 2});
  submit({load(2)}, {0, 1});
  EXPECT_THAT(check({load(2)}, {store(1), store(3)}, {0, 1, 2}), IsEmpty());
  submit({store(3)});
  EXPECT_THAT(check({}, {}, {}), IsEmpty());
}

TEST_F(RankLedger, FindsAJobThatWasNotHandedOver) {
  EXPECT_THAT(check({load(0)}, {store(1)}, {}),
              ElementsAre("job 0 on rank 0 was planned, but not handed over"));
  EXPECT_THAT(check({}, {}, {}),
              ElementsAre("job 1 on rank 0 was planned, but not handed over"));
}

TEST_F(RankLedger, FindsAJobThatWasHandedOverTwice) {
  submit({load(0)});
  submit({load(0)});
  EXPECT_THAT(check({load(0)}, {}, {}),
              ElementsAre("job 0 on rank 0 was handed over twice (S4)"));
}

TEST_F(RankLedger, FindsAStoreThatCameTooEarly) {
  submit({store(0)});
  EXPECT_THAT(
    check({}, {store(0)}, {}),
    ElementsAre("job 0 on rank 0 is handed over in the step that plans it "
                "(S3)"));
}

TEST_F(RankLedger, FindsAWaitThatCameTooEarly) {
  wait({0});
  submit({store(0)});
  EXPECT_THAT(
    check({}, {store(0)}, {0}),
    ElementsAre("job 0 on rank 0 is waited for before it is handed over "
                "(S4)"));
}

TEST_F(RankLedger, FindsAFlushThatNobodyWaitsFor) {
  submit({store(0)});
  EXPECT_THAT(check({}, {store(0)}, {0}),
              ElementsAre("job 0 on rank 0 is flushed, but compute does not "
                          "wait for it (S5)"));
  wait({0});
  EXPECT_THAT(check({}, {}, {}),
              ElementsAre("job 0 on rank 0 is waited for, but not flushed"));
}

TEST_F(RankLedger, FindsALoadThatDoesNotWaitForTheFlush) {
  submit({store(0)});
  wait({0});
  submit({load(1)});
  EXPECT_THAT(check({load(1)}, {store(0)}, {0}),
              ElementsAre("job 1 on rank 0 does not wait for the flush of job "
                          "0 (S5)"));
}

TEST_F(RankLedger, FindsACopyThatDoesNotWaitForCompute) {
  uut.end_step({1});
  submit({load(0)});
  EXPECT_THAT(
    check({load(0)}, {}, {}),
    ElementsAre("job 0 on rank 0 does not start behind the last compute "
                "(S6)"));
}

TEST_F(RankLedger, FindsAJobThatWasChanged) {
  auto other = load(0);
  other.rows = std::vector<job_row>{{chunk_key{}, 4, 0, {7}}};
  submit({other});
  EXPECT_THAT(check({load(0)}, {}, {}),
              ElementsAre("job 0 on rank 0 is not what was planned (S10)"));
}

} // namespace
} // namespace kvtide::conformance
