// SPDX-License-Identifier: Apache-2.0

/// @file
/// The engine gives its GPU memory back for a while, and takes it again.

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using namespace std::chrono_literals;

namespace kvtide::test {
namespace {

using ids = std::vector<job_id>;

/// P's first two chunks are in the host pool.
class Sleep : public ::testing::Test {
protected:
  Sleep() {
    warm(sys, P, {{1, 2}}, 8);
    (void)sys.device_log();
  }

  /// Nothing is in flight.
  void sleep_at_once() {
    sys.sleep();
    ASSERT_EQ(sys.ended(), ids{});
  }

  void expect_failure(const std::string& what) {
    EXPECT_THAT(sys.notices(), ElementsAre(what));
    EXPECT_THAT(sys.breaches(), ElementsAre(HasSubstr("call")));
  }

  test_system sys{with_ranks(1)};
};

TEST_F(Sleep, KeepsWhatTheHostHasAndFindsItAgainAfterwards) {
  sys.add(R, 9, {P, 8});
  sleep_at_once();
  EXPECT_EQ(sys.lookup(R), 0) << "not 'ask again'";
  EXPECT_EQ(sys.promise(R), 0u);
  EXPECT_TRUE(sys.wake());
  EXPECT_EQ(sys.lookup(R), 8);
  sys.alloc(R, {{4, 5, 6}}, 8);
  EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
  sys.done(1);
  EXPECT_THAT(sys.notices(), ElementsAre("load_done R 1"));
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

TEST_F(Sleep, RefusesStepsAndLoadsUntilTheEngineWakes) {
  sys.add(R, 9, {P, 8});
  ASSERT_EQ(sys.lookup(R), 8);
  sleep_at_once();
  EXPECT_EQ(sys.counters().held_slots, 0u) << "open promises end";
  sys.expect_wrong_calls();
  auto load = allocated{};
  load.request = R;
  load.external = 8;
  load.blocks = {{4, 5, 6}};
  load.hashed = {{0, 0, 0}};
  sys.raw_allocate(load);
  expect_failure("failed R out_of_order");
  sys.raw_step({3, {}, {}, {}});
  EXPECT_THAT(sys.notices(), ElementsAre(HasSubstr("out_of_order")));
  (void)sys.breaches();
  load.external = 0;
  sys.raw_allocate(load);
  EXPECT_THAT(sys.notices(), IsEmpty()) << "blocks without a load are no harm";
  EXPECT_TRUE(sys.wake());
  EXPECT_EQ(sys.step(), "-") << "the number of the refused step is still free";
}

TEST_F(Sleep, EndsOnlyOnceAndBeginsOnlyOnce) {
  sys.expect_wrong_calls();
  EXPECT_FALSE(sys.wake()) << "it is awake";
  (void)sys.notices();
  sleep_at_once();
  sys.sleep();
  EXPECT_EQ(sys.ended(), std::nullopt);
  EXPECT_THAT(sys.breaches(),
              ElementsAre(HasSubstr("the engine is awake"),
                          HasSubstr("the engine sleeps already")));
}

TEST_F(Sleep, HandsDeferredStoresOverAtOnceAndWaitsForThem) {
  sys.add(R, 4);
  ASSERT_EQ(sys.step({{{R, 4, {{3}}}}, {}}), "S1{R#0<-3}");
  ASSERT_THAT(sys.device_log(), IsEmpty()) << "it waits for the next step (S3)";
  sys.sleep();
  EXPECT_THAT(sys.device_log(), ElementsAre("submit 1")) << "which never comes";
  EXPECT_EQ(sys.ended(), std::nullopt);
  sys.done(1);
  EXPECT_EQ(sys.ended(), ids{});
  EXPECT_EQ(sys.host(R, 0), "hit");
}

TEST_F(Sleep, HandsStoresOverWhenTheComputeOfTheLastStepIsEnqueued) {
  sys.hold_compute();
  sys.add(R, 4);
  ASSERT_EQ(sys.step({{{R, 4, {{3}}}}, {}}), "S1{R#0<-3}");
  sys.sleep();
  EXPECT_THAT(sys.device_log(), IsEmpty()) << "nothing is computed yet (S6)";
  sys.end_compute();
  EXPECT_THAT(sys.device_log(), ElementsAre("submit 1"));
  sys.done(1);
  EXPECT_EQ(sys.ended(), ids{});
}

TEST_F(Sleep, NamesTheJobsThatStillRunAtTheDeadline) {
  sys.add(R, 4);
  ASSERT_EQ(sys.step({{{R, 4, {{3}}}}, {}}), "S1{R#0<-3}");
  sys.sleep(20ms);
  sys.pass(19ms);
  EXPECT_EQ(sys.ended(), std::nullopt);
  sys.pass(1ms);
  EXPECT_EQ(sys.ended(), ids{1});
  sys.done(1);
  EXPECT_EQ(sys.ended(), std::nullopt) << "answered once";
  EXPECT_TRUE(sys.wake());
}

TEST_F(Sleep, WakingEndsAWaitForJobs) {
  sys.add(R, 4);
  ASSERT_EQ(sys.step({{{R, 4, {{3}}}}, {}}), "S1{R#0<-3}");
  sys.sleep();
  EXPECT_TRUE(sys.wake());
  EXPECT_THAT(sys.heard().end()[-2], HasSubstr("done [1]"))
    << "sleep first, and what is in flight";
  EXPECT_THAT(sys.heard().end()[-1], HasSubstr("done []"));
  sys.done(1);
  EXPECT_EQ(sys.host(R, 0), "hit");
}

TEST_F(Sleep, StoresTheTailOfWhoFinishedBefore) {
  sys.add(R, 4);
  ASSERT_EQ(sys.step({{{R, 3, {{3}}}}, {}}), "-");
  ASSERT_EQ(sys.step({{{R, 1, {}}}, {}}), "S1{R#0<-3}");
  sys.out(R, 1);
  sys.add(Q, 7);
  ASSERT_EQ(sys.step({{{Q, 7, {{4, 5}}}}, {}}), "S2{Q#0<-4}");
  sys.out(Q, 2); // Eight tokens are written with the one that comes next.
  sys.set_computed(Q, 8);
  EXPECT_THAT(sys.finish(Q, finish_reason::abort), IsEmpty());
  sys.sleep();
  EXPECT_EQ(sys.jobs(), (ids{1, 2, 3})) << "job 3 is Q's tail (S2, S13)";
  sys.done({1, 2, 3});
  EXPECT_EQ(sys.ended(), ids{});
  EXPECT_EQ(sys.host(Q, 1), "hit");
  EXPECT_THAT(sys.tracked(), ElementsAre(R));
}

TEST_F(Sleep, ARequestThatFinishesMeanwhileEndsAtOnceAndStoresNothing) {
  for (auto delivery : {plan_delivery::direct, plan_delivery::by_engine}) {
    auto opts = with_ranks(1);
    opts.delivery = delivery;
    auto other = test_system{opts};
    other.add(R, 9);
    if (delivery == plan_delivery::direct) {
      ASSERT_EQ(other.step({{{R, 3, {{3, 4, 5}}}}, {}}), "-");
    }
    other.sleep();
    EXPECT_EQ(other.ended(), ids{});
    other.set_computed(R, 9);
    EXPECT_THAT(other.finish(R, finish_reason::stop), IsEmpty());
    EXPECT_THAT(other.tracked(), IsEmpty());
    EXPECT_THAT(other.jobs(), IsEmpty());
    EXPECT_TRUE(other.empty());
    other.add(R, 9);
    EXPECT_THAT(other.notices(), IsEmpty()) << "its id is free again";
  }
}

TEST_F(Sleep, WithPlansByTheEngineAFinishBeforeItEndsToo) {
  auto opts = with_ranks(1);
  opts.delivery = plan_delivery::by_engine;
  auto other = test_system{opts};
  other.add(R, 9);
  EXPECT_THAT(other.finish(R, finish_reason::stop), IsEmpty());
  EXPECT_THAT(other.tracked(), ElementsAre(R));
  other.sleep();
  EXPECT_EQ(other.ended(), ids{});
  EXPECT_THAT(other.tracked(), IsEmpty());
}

TEST_F(Sleep, ALoadThatNoStepHasDeliveredFails) {
  sys.add(R, 9, {P, 8});
  ASSERT_EQ(sys.lookup(R), 8);
  sys.alloc(R, {{4, 5, 6}}, 8);
  sys.sleep();
  EXPECT_THAT(sys.notices(), ElementsAre(HasSubstr("load_failed R 1")));
  EXPECT_EQ(sys.ended(), ids{});
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
  EXPECT_TRUE(sys.wake());
  EXPECT_EQ(sys.step(), "-") << "it is not delivered later";
  EXPECT_EQ(sys.lookup(R), 8);
}

TEST_F(Sleep, ALoadInFlightEndsAndIsAnnounced) {
  sys.add(R, 9, {P, 8});
  ASSERT_EQ(sys.lookup(R), 8);
  sys.alloc(R, {{4, 5, 6}}, 8);
  ASSERT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
  sys.sleep();
  EXPECT_EQ(sys.lookup(R), 0) << "not 'ask again', although it loads";
  EXPECT_EQ(sys.ended(), std::nullopt);
  sys.done(1);
  EXPECT_THAT(sys.notices(), ElementsAre("load_done R 1"));
  EXPECT_EQ(sys.ended(), ids{});
}

// R3
TEST_F(Sleep, EveryRequestHasLostItsBlocks) {
  sys.add(R, 7);
  ASSERT_EQ(sys.step({{{R, 3, {{3, 4}}}}, {}}), "-");
  sleep_at_once();
  ASSERT_TRUE(sys.wake());
  sys.expect_wrong_calls();
  auto row = step_row{};
  row.request = R;
  row.computed = 3;
  row.scheduled = 4;
  row.known = 7;
  row.new_blocks = {{5}};
  sys.raw_step({4, {row}, {}, {}});
  EXPECT_THAT(sys.jobs(), IsEmpty()) << "block 3 is not R's any more";
  EXPECT_THAT(sys.breaches(), ElementsAre(HasSubstr("no block table")));
}

TEST_F(Sleep, ARunningRequestIsResumedAndStoredAsEver) {
  sys.add(R, 7);
  ASSERT_EQ(sys.step({{{R, 3, {{3, 4}}}}, {}}), "-");
  sleep_at_once();
  ASSERT_TRUE(sys.wake());
  EXPECT_EQ(sys.lookup(R), 0);
  EXPECT_EQ(sys.step({{{R, 7, {{6, 7}}}}, {}}), "S1{R#0<-6}");
  sys.done(1);
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

TEST_F(Sleep, WakingNeedsTheMemoryOfEveryRank) {
  sleep_at_once();
  sys.unregister(0);
  sys.expect_wrong_calls();
  EXPECT_FALSE(sys.wake());
  EXPECT_THAT(sys.notices(), ElementsAre(HasSubstr("rank_unavailable")));
  EXPECT_THAT(sys.breaches(),
              ElementsAre(HasSubstr("rank 0 has no registered memory")));
  sys.register_again(0);
  EXPECT_TRUE(sys.wake());
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8) << "the host pool was there all along";
}

TEST_F(Sleep, NothingIsFoundOrStoredWhileARankHasNoMemory) {
  sys.unregister(0); // Awake, all the same.
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 0);
  EXPECT_EQ(sys.explain(R).reason, miss_reason::rank_away);
  sys.add(Q, 4);
  EXPECT_EQ(sys.step({{{Q, 4, {{3}}}}, {}}), "-");
  sys.register_again(0);
  EXPECT_EQ(sys.lookup(R), 8);
  EXPECT_EQ(sys.step(), "S1{Q#0<-3}");
}

TEST_F(Sleep, ARankThatDiesMeanwhileHasToComeBackFirst) {
  sleep_at_once();
  sys.kill_rank(0);
  EXPECT_THAT(sys.notices(), ElementsAre("rank_lost 0"));
  sys.expect_wrong_calls();
  EXPECT_FALSE(sys.wake());
  EXPECT_THAT(sys.breaches(), ElementsAre(HasSubstr("rank 0 is not there")));
  sys.restart_rank(0, 64);
  (void)sys.notices();
  EXPECT_TRUE(sys.wake());
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 0) << "its host pool went with it";
}

TEST_F(Sleep, ARankThatDiesEndsItsJobsAndWithThemTheWait) {
  sys.add(R, 4);
  ASSERT_EQ(sys.step({{{R, 4, {{3}}}}, {}}), "S1{R#0<-3}");
  sys.sleep();
  EXPECT_EQ(sys.ended(), std::nullopt);
  sys.kill_rank(0);
  EXPECT_EQ(sys.ended(), ids{});
}

TEST_F(Sleep, AResetMeanwhileForgetsAllAndTheWaitGoesOn) {
  sys.add(R, 4);
  ASSERT_EQ(sys.step({{{R, 4, {{3}}}}, {}}), "S1{R#0<-3}");
  sys.sleep();
  EXPECT_EQ(sys.reset(), ids{1});
  EXPECT_EQ(sys.ended(), std::nullopt) << "its copy still reads block 3";
  sys.done(1);
  EXPECT_EQ(sys.ended(), ids{});
  EXPECT_TRUE(sys.wake());
  sys.add(Q, 9, {P, 8});
  EXPECT_EQ(sys.lookup(Q), 0);
}

TEST_F(Sleep, AShutdownMeanwhileIsAnsweredOnItsOwn) {
  sys.add(R, 4);
  ASSERT_EQ(sys.step({{{R, 4, {{3}}}}, {}}), "S1{R#0<-3}");
  sys.sleep(30ms);
  sys.shutdown(10ms);
  sys.pass(10ms);
  EXPECT_EQ(sys.ended(), ids{1}) << "shutdown";
  EXPECT_EQ(sys.ended(), std::nullopt);
  sys.pass(20ms);
  EXPECT_EQ(sys.ended(), ids{1}) << "sleep";
  sys.done(1);
}

TEST_F(Sleep, AllElseGoesOn) {
  sys.add(R, 9, {P, 8});
  sleep_at_once();
  sys.add(Q, 4);
  sys.out(R, 1);
  sys.truncate(R, 8);
  EXPECT_EQ(sys.counters().tracked_requests, 2u);
  EXPECT_THAT(sys.events(),
              ElementsAre(HasSubstr("stored P#0"), HasSubstr("stored P#1")));
  EXPECT_EQ(sys.explain(R).reason, miss_reason::asleep);
  EXPECT_THAT(sys.finish(Q, finish_reason::abort), IsEmpty());
  EXPECT_THAT(sys.notices(), IsEmpty());
  EXPECT_TRUE(sys.wake());
}

} // namespace
} // namespace kvtide::test
