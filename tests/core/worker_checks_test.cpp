// SPDX-License-Identifier: Apache-2.0

#include "core/worker_checks.hpp"
#include "tests/core/breach_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::core {
namespace {

constexpr auto idle = nanoseconds_t{100};

class WorkerChecks : public ::testing::Test {
protected:
  static std::vector<job> stores(job_id id) {
    return {job_on(id, job_kind::store, {0})};
  }

  static std::vector<job> loads(job_id id) {
    return {job_on(id, job_kind::load, {0})};
  }

  breach_list list;
  worker_checks uut{list.log, idle};
};

TEST_F(WorkerChecks, S3AStoreWaitsForTheNextStep) {
  uut.begun(1, {});
  uut.ended(1, 10);
  uut.planned(stores(5), 1, 20);
  uut.submitted(stores(5), {}, 1, 119);
  EXPECT_THAT(list.take(),
              ElementsAre("S3 a store was handed over before the next step: "
                          "job 5 of step 1 when step 1 was begun"));
  uut.begun(2, {});
  uut.submitted(stores(5), {}, 1, 119);
  EXPECT_THAT(list.take(), IsEmpty());
}

TEST_F(WorkerChecks, S3AStoreWaitsNoLongerThanTheIdleTime) {
  uut.begun(1, {});
  uut.planned(stores(5), 1, 10);
  uut.submitted(stores(5), {}, std::nullopt, 500);
  EXPECT_EQ(list.take().size(), 1u) << "its step has not ended";
  uut.ended(1, 20);
  uut.submitted(stores(5), {}, 1, 120);
  EXPECT_THAT(list.take(), IsEmpty());
}

TEST_F(WorkerChecks, S3AFlushedStoreDoesNotWait) {
  uut.begun(1, {});
  uut.submitted(stores(5), {}, std::nullopt, 0);
  EXPECT_THAT(list.take(), IsEmpty());
}

TEST_F(WorkerChecks, S3NothingWaitsWhenTheMemoryGoes) {
  uut.begun(1, {});
  uut.ended(1, 10);
  uut.planned(stores(5), 1, 20);
  uut.leaving();
  uut.submitted(stores(5), {}, 1, 21);
  EXPECT_THAT(list.take(), IsEmpty());
}

TEST_F(WorkerChecks, S5ComputeWaitsForTheFlush) {
  transfer_ledger in_flight{1'000};
  in_flight.add(4, 0);
  in_flight.add(5, 0);
  uut.begun(1, {3, 4});
  uut.ready(in_flight);
  EXPECT_THAT(list.take(), ElementsAre("S5 compute goes on before the flush "
                                       "ended: step 1, job 4"));
  (void)in_flight.end(4);
  uut.ready(in_flight);
  EXPECT_THAT(list.take(), IsEmpty());
}

TEST_F(WorkerChecks, S5ALoadWaitsForTheFlush) {
  uut.begun(1, {3, 7});
  uut.submitted(loads(7), {3}, std::nullopt, 0);
  EXPECT_THAT(list.take(), IsEmpty()) << "it does not wait for itself";
  uut.submitted(loads(7), {}, std::nullopt, 0);
  EXPECT_THAT(list.take(), ElementsAre("S5 a load does not wait for the flush: "
                                       "job 7 of step 1 for job 3"));
}

TEST_F(WorkerChecks, S6AStepBeginsWhenTheOneBeforeHasEnded) {
  uut.begun(7, {});
  uut.begun(8, {});
  EXPECT_THAT(list.take(),
              ElementsAre("S6 a plan was run before the end of the step before "
                          "it: begin_step(8) came after step 7 began and no "
                          "step ended"));
  uut.ended(8, 0);
  uut.begun(9, {});
  EXPECT_THAT(list.take(), IsEmpty());
}

TEST_F(WorkerChecks, S6CopiesWaitForTheLastCompute) {
  uut.begun(1, {});
  uut.ended(1, 0);
  uut.begun(2, {});
  uut.submitted(loads(3), {}, 1, 0);
  EXPECT_THAT(list.take(), IsEmpty());
  uut.ended(2, 0);
  uut.begun(3, {});
  uut.submitted(loads(4), {}, 1, 0);
  EXPECT_THAT(list.take(),
              ElementsAre("S6 copies do not wait for the last compute: those "
                          "of job 4 wait for step 1, but step 2 was enqueued "
                          "last"));
}

} // namespace
} // namespace kvtide::core
