// SPDX-License-Identifier: Apache-2.0

#include "actors/alive.hpp"
#include "actors/gpu_worker.hpp"
#include "messages/plan_bytes.hpp"
#include "tests/actors/worker_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace kvtide {
namespace {

using test::begin;
using test::stores;

class GpuWorker : public test::worker_fixture {};

// -- registration -------------------------------------------------------------

TEST_F(GpuWorker, TellsRankAndSchedulerHowManySlotsTheDeviceHas) {
  spawn();
  tell(msg::register_kv{memory});
  EXPECT_THAT(take_asked(), ElementsAre("register"));
  EXPECT_THAT(rank.registered, IsEmpty());
  tell(msg::memory_registered{10, 4'096, {}, {}});
  ASSERT_EQ(rank.registered.size(), 1u);
  EXPECT_EQ(rank.registered[0].rank, 3u);
  EXPECT_EQ(rank.registered[0].slots, 10u);
  EXPECT_EQ(rank.registered[0].slot_bytes, 4'096u);
  EXPECT_EQ(rank.registered[0].reason.code, ec::none);
  ASSERT_EQ(told.ready.size(), 1u);
  EXPECT_EQ(told.ready[0].rank, 3u);
  EXPECT_EQ(told.ready[0].incarnation, 7u);
  EXPECT_EQ(told.ready[0].slots, 10u);
}

TEST_F(GpuWorker, RefusesMemoryOfAnotherRankOrModelOrWriter) {
  spawn();
  auto other_rank = memory;
  other_rank.rank = 2;
  auto other_model = memory;
  other_model.model_fingerprint = "another";
  auto other_writer = memory;
  other_writer.writer = 2;
  for (const auto& wrong : {other_rank, other_model, other_writer}) {
    tell(msg::register_kv{wrong});
    EXPECT_EQ(rank.registered.back().reason.code, ec::invalid_argument);
    EXPECT_NE(rank.registered.back().reason.text, "");
  }
  EXPECT_EQ(rank.registered.size(), 3u);
  EXPECT_THAT(take_asked(), IsEmpty());
  EXPECT_THAT(told.ready, IsEmpty());
}

TEST_F(GpuWorker, PassesOnThatTheDeviceRefusesTheMemory) {
  spawn();
  tell(msg::register_kv{memory});
  tell(msg::memory_registered{0, 0, {ec::out_of_memory, "too much"}, {}});
  ASSERT_EQ(rank.registered.size(), 1u);
  EXPECT_EQ(rank.registered[0].reason.code, ec::out_of_memory);
  EXPECT_THAT(told.ready, IsEmpty());
  tell(msg::register_kv{memory});
  EXPECT_THAT(take_asked(), ElementsAre("register", "register"));
}

TEST_F(GpuWorker, RefusesASecondRegistration) {
  start();
  tell(msg::register_kv{memory});
  EXPECT_EQ(rank.registered.back().reason.code, ec::out_of_order);
  EXPECT_THAT(take_asked(), IsEmpty());
}

TEST_F(GpuWorker, SubmitsNothingAfterUnregister) {
  start();
  run_step(begin(1));
  tell(stores(1, {1}));
  tell(begin(2));
  tell(stores(2, {2}));
  tell(begin(3, {3}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
  tell(msg::unregister_kv{});
  EXPECT_THAT(take_asked(), ElementsAre("unregister"));
  EXPECT_THAT(take_reports(), ElementsAre("2 failed", "3 failed"));
  EXPECT_EQ(rank.unregistered, 0u);
  ASSERT_EQ(told.left.size(), 1u) << "the scheduler hears of it first";
  EXPECT_EQ(told.left[0].rank, 3u);
  EXPECT_EQ(told.left[0].incarnation, 7u);
  tell(msg::copies_done{{{1, true, 0, {}}}});
  tell(msg::memory_unregistered{});
  EXPECT_EQ(rank.unregistered, 1u);
  tell(msg::end_step{2, {}});
  tell(stores(3, {4}));
  tell(msg::end_step{3, {}});
  run_step(begin(4, {5}));
  EXPECT_THAT(take_asked(), IsEmpty());
  EXPECT_THAT(take_reports(), ElementsAre("1 done", "4 failed", "5 failed"));
}

TEST_F(GpuWorker, HandsComputedStoresOverBeforeItUnregisters) {
  start();
  run_step(begin(1), {21});
  tell(stores(1, {1}));
  tell(msg::unregister_kv{});
  EXPECT_THAT(take_asked(), ElementsAre("submit 1 events 21", "unregister"));
}

TEST_F(GpuWorker, RefusesToUnregisterWhatIsNotRegistered) {
  spawn();
  tell(msg::unregister_kv{});
  ASSERT_EQ(rank.failures.size(), 1u);
  EXPECT_EQ(rank.failures[0].reason.code, ec::out_of_order);
  EXPECT_EQ(rank.unregistered, 0u);
}

// -- S3 -----------------------------------------------------------------------

TEST_F(GpuWorker, S3HandsStoresOverAtTheStartOfTheNextStep) {
  start();
  tell(begin(1));
  tell(stores(1, {1, 2}));
  tell(msg::end_step{1, {}});
  EXPECT_THAT(take_asked(), IsEmpty());
  tell(begin(2));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1 2"));
}

// -- S4 -----------------------------------------------------------------------

TEST_F(GpuWorker, S4HandsDeferredThenFlushedStoresOverBeforeAnybodyWaits) {
  start();
  // The public vector worker_flush_deferred_and_load.
  tell(begin(1, {0}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 0"));
  tell(stores(1, {1}));
  tell(msg::end_step{1, {}});
  tell(begin(2, {}, {3}, {1, 3}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1 3", "fence 1 3"));
  tell(stores(2, {2}));
  for (const auto id : {0, 1, 3})
    tell(msg::copies_done{{{static_cast<job_id>(id), true, 0, {}}}});
  EXPECT_THAT(take_reports(), ElementsAre("0 done", "1 done", "3 done"));
  tell(msg::fence_made{2, {}});
  tell(msg::end_step{2, {}});
  tell(begin(3, {4}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 2", "submit 4"));
  tell(msg::end_step{3, {}});
  tell(begin(4, {}, {}, {4}));
  EXPECT_THAT(take_asked(), ElementsAre("fence 4"));
}

TEST_F(GpuWorker, S4WaitsForAJobThatIsDoneAlready) {
  start();
  run_step(begin(1, {1}));
  tell(msg::copies_done{{{1, true, 0, {}}}});
  tell(begin(2, {}, {}, {1}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1", "fence 1"));
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(GpuWorker, S4HandsEachJobOverOnce) {
  ear.expect();
  start();
  run_step(begin(1, {1}));
  tell(stores(1, {2, 2}));
  EXPECT_EQ(state().order.total(), 1u);
  tell(begin(2, {1, 3}, {2}));
  EXPECT_EQ(state().order.total(), 3u);
  EXPECT_THAT(take_asked(), ElementsAre("submit 1", "submit 2", "submit 3"));
}

TEST_F(GpuWorker, S4DropsAFlushIdThatWasNeverPlanned) {
  ear.expect();
  start();
  run_step(begin(1, {1}));
  tell(begin(2, {}, {}, {5}));
  EXPECT_EQ(state().order.total(), 1u);
  EXPECT_THAT(take_ready(), ElementsAre(1, 2));
  tell(msg::end_step{2, {}});
  tell(begin(3, {}, {}, {1, 6}));
  EXPECT_EQ(state().order.total(), 2u);
  EXPECT_THAT(take_asked(), ElementsAre("submit 1", "fence 1"));
}

TEST_F(GpuWorker, S4WaitsForNothingThatAnEarlierLifeOfItsRankHeardOf) {
  start();
  tell(begin(7, {}, {}, {4, 5}));
  EXPECT_THAT(take_asked(), IsEmpty());
  tell(msg::end_step{7, {}});
  tell(begin(8, {6}, {}, {4}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 6"));
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(GpuWorker, S4SafeRulesDropALoadOfTheSameStepFromTheFlush) {
  start();
  run_step(begin(1));
  tell(stores(1, {1}));
  tell(begin(2, {2, 3}, {}, {1, 2, 3}));
  EXPECT_THAT(take_asked(),
              ElementsAre("submit 1", "fence 1", "submit 2 3 after 1"));
  tell(msg::copies_done{{{1, true, 0, {}}}});
  tell(msg::fence_made{2, {}});
  tell(msg::end_step{2, {}});
  tell(begin(3, {4}, {}, {4}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 4"));
  EXPECT_THAT(take_ready(), ElementsAre(1, 2, 3));
}

TEST_F(GpuWorker, S4ReferenceRulesNameALoadOfTheSameStepBeforeItIsInFlight) {
  config.rule = &core::reference_rules;
  start();
  tell(begin(1, {1}, {}, {1}));
  EXPECT_THAT(take_asked(), ElementsAre("fence 1", "submit 1"));
}

TEST_F(GpuWorker, S4ReplicaReportsStoresInsteadOfCopyingThem) {
  // The public vector worker_non_writer_acks: a flushed store before the pass,
  // the others when they would be deferred.
  memory.writers = 2;
  memory.writer = 2;
  start();
  tell(begin(1, {1}, {3}, {3}));
  EXPECT_THAT(take_reports(), ElementsAre("3 done"));
  EXPECT_THAT(take_asked(), ElementsAre("fence 3", "submit 1 after 3"));
  tell(stores(1, {2, 4}));
  EXPECT_THAT(take_reports(), ElementsAre("2 done", "4 done"));
  tell(msg::fence_made{1, {}});
  tell(msg::end_step{1, {}});
  tell(begin(2));
  EXPECT_THAT(take_asked(), IsEmpty());
}

TEST_F(GpuWorker, S4WritersShareStoresOutByJob) {
  memory.writers = 2;
  memory.writer = 1;
  start();
  run_step(begin(1, {}, {1, 2}));
  EXPECT_THAT(take_reports(), ElementsAre("2 done"));
  tell(stores(1, {3, 4}));
  EXPECT_THAT(take_reports(), ElementsAre("4 done"));
  tell(begin(2));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1", "submit 3"));
}

// -- S5 -----------------------------------------------------------------------

TEST_F(GpuWorker, S5ReadyWithoutAFenceComesAtOnce) {
  start();
  tell(begin(1, {1}));
  ASSERT_EQ(rank.ready.size(), 1u);
  EXPECT_EQ(rank.ready[0].rank, 3u);
  EXPECT_EQ(rank.ready[0].wait_for.kind, fence::kind_t::none);
}

TEST_F(GpuWorker, S5ReadyWaitsForTheFenceAndPassesItOn) {
  start();
  run_step(begin(1, {}, {1}));
  take_ready();
  tell(begin(2, {}, {}, {1}));
  EXPECT_THAT(rank.ready, IsEmpty());
  tell(msg::fence_made{2, {fence::kind_t::event, 42}});
  ASSERT_EQ(rank.ready.size(), 1u);
  EXPECT_EQ(rank.ready[0].step, 2u);
  EXPECT_EQ(rank.ready[0].wait_for.kind, fence::kind_t::event);
  EXPECT_EQ(rank.ready[0].wait_for.handle, 42u);
}

TEST_F(GpuWorker, S5LoadsStartBehindTheFlushedJobs) {
  start();
  run_step(begin(1));
  tell(stores(1, {1}));
  tell(begin(2, {2}, {3}, {1, 3}));
  EXPECT_THAT(take_asked(),
              ElementsAre("submit 1 3", "fence 1 3", "submit 2 after 1 3"));
}

TEST_F(GpuWorker, S5ComputeMustNotBeEnqueuedBeforeTheFenceIsKnown) {
  ear.expect();
  start();
  run_step(begin(1, {}, {1}));
  tell(begin(2, {}, {}, {1}));
  tell(msg::end_step{2, {}});
  ASSERT_EQ(rank.failures.size(), 1u);
  EXPECT_EQ(rank.failures[0].reason.code, ec::out_of_order);
  tell(msg::fence_made{2, {}});
  tell(msg::end_step{2, {}});
  EXPECT_EQ(rank.failures.size(), 1u);
}

// -- S6 -----------------------------------------------------------------------

TEST_F(GpuWorker, S6HoldsAPlanUntilTheStepBeforeItIsEnqueued) {
  start();
  tell(begin(1));
  tell(begin(2, {1}));
  EXPECT_THAT(take_ready(), ElementsAre(1));
  EXPECT_THAT(take_asked(), IsEmpty());
  tell(msg::end_step{1, {}});
  EXPECT_THAT(take_ready(), ElementsAre(2));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
}

TEST_F(GpuWorker, S6HoldsSeveralPlansAndTheirStoresInOrder) {
  start();
  tell(begin(5));
  tell(stores(5, {1}));
  tell(begin(6, {2}));
  tell(stores(6, {3}));
  tell(begin(7, {4}));
  tell(stores(7, {5}));
  EXPECT_THAT(take_asked(), IsEmpty());
  tell(msg::end_step{5, {10}});
  EXPECT_THAT(take_asked(),
              ElementsAre("submit 1 events 10", "submit 2 events 10"));
  EXPECT_THAT(take_ready(), ElementsAre(5, 6));
  tell(msg::end_step{6, {11, 12}});
  EXPECT_THAT(take_asked(),
              ElementsAre("submit 3 events 11 12", "submit 4 events 11 12"));
  tell(msg::end_step{7, {}});
  tell(begin(8));
  EXPECT_THAT(take_asked(), ElementsAre("submit 5"));
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(GpuWorker, S6EveryCopyWaitsForTheComputeThatWasEnqueuedLast) {
  start();
  run_step(begin(1), {8, 9});
  tell(stores(1, {1}));
  tell(begin(2, {2}, {3}, {1}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1 3 events 8 9", "fence 1",
                                        "submit 2 after 1 events 8 9"));
}

// -- S9 -----------------------------------------------------------------------

TEST_F(GpuWorker, S9ReportsEachJobOnceWithItsFirstFailedRow) {
  ear.expect();
  start();
  run_step(begin(1, {1, 2}));
  tell(msg::copies_done{{{2, false, 4, "broken"}}});
  tell(msg::copies_done{{{1, true, 0, {}}}});
  tell(msg::copies_done{{{1, true, 0, {}}}});
  EXPECT_THAT(take_reports(), ElementsAre("2 failed from 4", "1 done"));
  EXPECT_EQ(state().order.total(), 1u);
}

TEST_F(GpuWorker, TellsTheRankWhatItsDeviceCopied) {
  start();
  run_step(begin(1, {1, 2}));
  tell(msg::copies_done{{{1, true, 0, {}}}, 100, 3us});
  tell(msg::copies_done{{{2, false, 4, "broken"}}, 50, 2us});
  tell(msg::get_rank_stats{});
  ASSERT_EQ(rank.stats.size(), 1u);
  EXPECT_EQ(rank.stats[0].failed_jobs, 1u);
  EXPECT_EQ(rank.stats[0].copied_bytes, 150u);
  EXPECT_EQ(rank.stats[0].copy_time, 5us);
}

TEST_F(GpuWorker, S9IgnoresTheEndOfAJobThatItNeverSaw) {
  ear.expect();
  start();
  tell(msg::copies_done{{{9, true, 0, {}}}});
  EXPECT_THAT(take_reports(), IsEmpty());
  EXPECT_EQ(state().order.total(), 1u);
}

TEST_F(GpuWorker, S9ReportsALateJobOnceAndItsEndOnce) {
  ear.expect();
  start();
  run_step(begin(1, {1, 2}));
  world.advance(999ms);
  EXPECT_THAT(take_reports(), IsEmpty());
  tell(msg::copies_done{{{2, true, 0, {}}}});
  for (auto i = 0; i < 10; ++i)
    world.advance(100ms);
  EXPECT_THAT(take_reports(), ElementsAre("2 done", "1 late"));
  EXPECT_FALSE(world.timers_pending());
  tell(msg::copies_done{{{1, false, 0, "broken"}}});
  tell(msg::copies_done{{{1, false, 0, "broken"}}});
  EXPECT_THAT(take_reports(), ElementsAre("1 drained"));
}

TEST_F(GpuWorker, G1AsksTheDeviceBeforeItCallsAJobLate) {
  start();
  run_step(begin(1, {1, 2}));
  take_asked();
  for (auto i = 0; i < 10; ++i)
    world.advance(100ms);
  const auto said = take_asked();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr("tick"));
  tell(msg::copies_done{{{1, true, 0, {}}}});
  EXPECT_THAT(take_reports(), ElementsAre("1 done"));
  tell(msg::device_ticked{never});
  EXPECT_THAT(take_reports(), ElementsAre("2 late"));
  world.advance(1s);
  EXPECT_THAT(take_asked(), IsEmpty()) << "nothing is left to ask for";
}

// It may hang in its driver.
TEST_F(GpuWorker, G1WaitsNoLongerThanThatForADeviceThatSaysNothing) {
  start();
  run_step(begin(1, {1}));
  for (auto i = 0; i < 10; ++i)
    world.advance(100ms);
  EXPECT_THAT(take_reports(), IsEmpty());
  world.advance(look_patience - 1ns);
  EXPECT_THAT(take_reports(), IsEmpty());
  run_step(begin(2, {2}));
  world.advance(1ns);
  EXPECT_THAT(take_reports(), ElementsAre("1 late"));
  take_asked();
  for (auto i = 0; i < 10; ++i)
    world.advance(100ms);
  world.advance(look_patience);
  EXPECT_THAT(take_reports(), ElementsAre("2 late"));
  EXPECT_THAT(take_asked(), IsEmpty()) << "one question at a time";
  tell(msg::device_ticked{never}); // At last.
  EXPECT_THAT(take_reports(), IsEmpty());
}

TEST_F(GpuWorker, S9FailsWhatIsInFlightWhenTheDeviceGoes) {
  start();
  run_step(begin(1, {1}));
  tell(stores(1, {2}));
  tell(begin(2, {}, {}, {1}));
  tell(stores(2, {3}));
  take_ready();
  world.kill(target);
  EXPECT_THAT(take_reports(), ElementsAre("1 failed", "2 failed", "3 failed"));
  // A fence ends when its jobs fail (S5).
  EXPECT_THAT(take_ready(), ElementsAre(2));
  ASSERT_EQ(rank.failures.size(), 1u);
  EXPECT_EQ(rank.failures[0].reason.code, ec::device_failure);
  // The scheduler hears that the rank is lost.
  EXPECT_FALSE(is_alive(uut));
}

TEST_F(GpuWorker, AnswersRegistrationsWhenTheDeviceGoes) {
  spawn();
  tell(msg::register_kv{memory});
  world.kill(target);
  ASSERT_EQ(rank.registered.size(), 1u);
  EXPECT_EQ(rank.registered[0].reason.code, ec::device_failure);
  EXPECT_FALSE(is_alive(uut));
  start();
  tell(msg::unregister_kv{});
  world.kill(target);
  EXPECT_EQ(rank.unregistered, 1u);
  EXPECT_FALSE(is_alive(uut));
}

// -- without a scheduler ------------------------------------------------------

TEST_F(GpuWorker, LetsCopiesEndAndQuitsWhenTheSchedulerGoes) {
  start();
  run_step(begin(1, {1, 2}));
  tell(stores(1, {3}));
  tell(begin(2, {4}, {}, {1}));
  tell(begin(3, {5}));
  take_asked();
  take_ready();
  world.kill(boss);
  ASSERT_EQ(rank.failures.size(), 1u);
  EXPECT_EQ(rank.failures[0].reason.code, ec::shutting_down);
  tell(msg::copies_done{{{1, true, 0, {}}}});
  tell(msg::fence_made{2, {}});
  EXPECT_THAT(take_ready(), ElementsAre(2)) << "its compute may go on";
  tell(msg::end_step{2, {}});
  tell(msg::await_step{3, {}});
  EXPECT_EQ(rank.failures.size(), 2u) << "no plan will come";
  EXPECT_THAT(take_asked(), IsEmpty());
  for (const auto id : {2, 3})
    tell(msg::copies_done{{{static_cast<job_id>(id), true, 0, {}}}});
  EXPECT_TRUE(is_alive(uut));
  tell(msg::copies_done{{{4, true, 0, {}}}});
  EXPECT_FALSE(is_alive(uut));
}

TEST_F(GpuWorker, QuitsAtOnceWithoutASchedulerIfNothingRuns) {
  start();
  run_step(begin(1));
  tell(stores(1, {1}));
  world.kill(boss);
  EXPECT_FALSE(is_alive(uut));
  EXPECT_THAT(take_asked(), IsEmpty());
}

TEST_F(GpuWorker, AnswersRegistrationsWithoutAScheduler) {
  spawn();
  tell(msg::register_kv{memory});
  world.kill(boss);
  EXPECT_TRUE(is_alive(uut));
  tell(msg::memory_registered{10, 4'096, {}, {}});
  EXPECT_EQ(rank.registered.size(), 1u);
  EXPECT_FALSE(is_alive(uut));
  start();
  run_step(begin(1, {1}));
  tell(msg::unregister_kv{});
  world.kill(boss);
  EXPECT_TRUE(is_alive(uut));
  tell(msg::copies_done{{{1, true, 0, {}}}});
  tell(msg::memory_unregistered{});
  EXPECT_EQ(rank.unregistered, 1u);
  EXPECT_FALSE(is_alive(uut));
}

TEST_F(GpuWorker, S9RepeatsWhatItReportedUntilNobodyAsks) {
  start();
  run_step(begin(1, {1, 2, 3}));
  tell(stores(1, {4}));
  tell(msg::copies_done{{{1, true, 0, {}}}});
  tell(msg::copies_done{{{2, false, 4, "broken"}}});
  EXPECT_THAT(take_reports(), ElementsAre("1 done", "2 failed from 4"));
  // What is here still comes.
  tell(msg::report_again{{1, 2, 3, 4}, {}});
  EXPECT_THAT(take_reports(), ElementsAre("1 done", "2 failed from 4"));
  auto next = begin(2);
  next.settled_below = 3;
  tell(next);
  EXPECT_EQ(state().outcomes.size(), 0u);
}

TEST_F(GpuWorker, S9RepeatsThatAJobIsLateOrOver) {
  start();
  run_step(begin(1, {1, 2}));
  for (auto i = 0; i < 10; ++i)
    world.advance(100ms);
  tell(msg::device_ticked{never});
  tell(msg::copies_done{{{1, true, 0, {}}}});
  EXPECT_THAT(take_reports(), ElementsAre("1 late", "2 late", "1 drained"));
  tell(msg::report_again{{1, 2}, {}});
  EXPECT_THAT(take_reports(), ElementsAre("1 late", "1 drained", "2 late"));
  tell(msg::report_again{{}, {1, 2}});
  EXPECT_THAT(take_reports(), ElementsAre("1 drained"));
}

TEST_F(GpuWorker, S6FailsStoresOfAStepThatAnEarlierLifeComputed) {
  start();
  tell(stores(3, {7}));
  EXPECT_THAT(take_reports(), ElementsAre("7 failed"));
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(GpuWorker, S12NeverHandsOverStoresOfAStepThatAnEarlierLifeSaw) {
  start();
  tell(stores(3, {7}));
  EXPECT_THAT(take_reports(), ElementsAre("7 failed"));
  run_step(begin(4));
  EXPECT_THAT(take_asked(), ElementsAre()) << "nobody knows what it would read";
}

TEST_F(GpuWorker, S9RefusesAJobThatItSaidItNeverHeardOf) {
  ear.expect();
  start();
  run_step(begin(1));
  tell(msg::report_again{{5}, {}});
  EXPECT_THAT(take_reports(), ElementsAre("5 failed"));
  tell(stores(1, {5, 6}));
  EXPECT_EQ(state().order.total(), 1u);
  tell(begin(2));
  EXPECT_THAT(take_asked(), ElementsAre("submit 6"));
  EXPECT_THAT(take_reports(), IsEmpty());
}

// -- S10 ----------------------------------------------------------------------

TEST_F(GpuWorker, S10SaysOnlyHowAJobEnded) {
  start();
  run_step(begin(1, {1}));
  tell(msg::copies_done{{{1, false, 2, "a secret of this rank"}}});
  ASSERT_EQ(told.reports.size(), 1u);
  // Does not compile with another field.
  const auto& [id, from, life, status, row, again] = told.reports[0];
  EXPECT_EQ(id, 1u);
  EXPECT_EQ(from, 3u);
  EXPECT_EQ(life, 7u);
  EXPECT_EQ(status, job_status::failed);
  EXPECT_EQ(row, 2u);
}

// -- S12 ----------------------------------------------------------------------

TEST_F(GpuWorker, S12DropsAPlanOutOfOrderAndFailsItsJobs) {
  ear.expect();
  start();
  run_step(begin(1));
  tell(begin(3, {2}, {1}));
  EXPECT_EQ(state().order.total(), 1u);
  EXPECT_THAT(take_reports(), ElementsAre("1 failed", "2 failed"));
  EXPECT_THAT(take_asked(), IsEmpty());
  tell(begin(2));
  EXPECT_THAT(take_ready(), ElementsAre(1, 2));
}

TEST_F(GpuWorker, S12DropsStoresOfAnEarlierStepAndFailsThem) {
  ear.expect();
  start();
  run_step(begin(2));
  tell(stores(1, {2}));
  tell(stores(2, {3}));
  EXPECT_EQ(state().order.total(), 1u);
  EXPECT_THAT(take_reports(), ElementsAre("2 failed"));
  tell(begin(3));
  EXPECT_THAT(take_asked(), ElementsAre("submit 3"));
  // It will have its own report (S9).
  tell(stores(2, {3}));
  EXPECT_EQ(state().order.total(), 2u);
  EXPECT_THAT(take_reports(), IsEmpty());
}

TEST_F(GpuWorker, S12TellsTheRankThatAnEndIsOutOfOrder) {
  ear.expect();
  start();
  tell(msg::end_step{1, {}});
  tell(begin(1));
  tell(msg::end_step{2, {}});
  tell(msg::end_step{1, {}});
  tell(msg::end_step{1, {}});
  EXPECT_EQ(state().order.total(), 3u);
  ASSERT_EQ(rank.failures.size(), 3u);
  for (const auto& x : rank.failures) {
    EXPECT_EQ(x.rank, 3u);
    EXPECT_EQ(x.reason.code, ec::out_of_order);
  }
}

TEST_F(GpuWorker, S12IgnoresAFenceThatNobodyWaitsFor) {
  ear.expect();
  start();
  tell(msg::fence_made{1, {}});
  run_step(begin(1, {}, {1}));
  tell(begin(2, {}, {}, {1}));
  tell(msg::fence_made{1, {}});
  EXPECT_EQ(state().order.total(), 2u);
  EXPECT_THAT(take_ready(), ElementsAre(1));
}

// -- S13 ----------------------------------------------------------------------

TEST_F(GpuWorker, S13HandsStoresOverIfNoStepFollows) {
  start();
  run_step(begin(1), {4});
  tell(stores(1, {1}));
  world.advance(4'999us);
  EXPECT_THAT(take_asked(), IsEmpty());
  world.advance(1us);
  EXPECT_THAT(take_asked(), ElementsAre("submit 1 events 4"));
  tell(begin(2));
  EXPECT_THAT(take_asked(), IsEmpty());
}

TEST_F(GpuWorker, S13CountsFromTheLaterOfTheEndAndTheStores) {
  start();
  run_step(begin(1));
  world.advance(20ms);
  tell(stores(1, {1}));
  world.advance(4ms);
  EXPECT_THAT(take_asked(), IsEmpty());
  world.advance(1ms);
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
  tell(begin(2));
  tell(stores(2, {2}));
  world.advance(20ms);
  // What is not enqueued yet cannot be stored.
  EXPECT_THAT(take_asked(), IsEmpty());
  tell(msg::end_step{2, {}});
  world.advance(4ms);
  EXPECT_THAT(take_asked(), IsEmpty());
  world.advance(1ms);
  EXPECT_THAT(take_asked(), ElementsAre("submit 2"));
}

TEST_F(GpuWorker, S13DoesNotHurryWhatTheNextStepHasTaken) {
  start();
  run_step(begin(1));
  tell(stores(1, {1}));
  world.advance(3ms);
  tell(begin(2));
  tell(stores(2, {2}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
  world.advance(3ms);
  tell(msg::end_step{2, {}});
  world.advance(4ms);
  EXPECT_THAT(take_asked(), IsEmpty());
  world.advance(1ms);
  EXPECT_THAT(take_asked(), ElementsAre("submit 2"));
}

TEST_F(GpuWorker, S13TakesWhatIsPlannedAfterAStepWithoutAnother) {
  start();
  run_step(begin(1));
  tell(stores(1, {1}));
  world.advance(4ms);
  tell(stores(1, {2}));
  world.advance(4ms);
  EXPECT_THAT(take_asked(), IsEmpty());
  world.advance(1ms);
  EXPECT_THAT(take_asked(), ElementsAre("submit 1 2"));
  tell(stores(1, {3}));
  tell(begin(2));
  EXPECT_THAT(take_asked(), ElementsAre("submit 3"));
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(GpuWorker, S13HandsStoresOverAtOnceBeforeTheEngineSleeps) {
  start();
  run_step(begin(1), {4});
  tell(stores(1, {1}));
  tell(msg::pause{1});
  EXPECT_THAT(take_asked(), ElementsAre("submit 1 events 4"));
  tell(stores(1, {2}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 2 events 4"));
  EXPECT_EQ(state().order.total(), 0u);
}

// S6
TEST_F(GpuWorker, S13WaitsForTheComputeOfTheLastStepBeforeTheEngineSleeps) {
  start();
  tell(begin(1));
  tell(stores(1, {1}));
  tell(begin(2));
  tell(stores(2, {2}));
  tell(msg::pause{2});
  EXPECT_THAT(take_asked(), IsEmpty());
  tell(msg::end_step{1, {}});
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
  tell(msg::end_step{2, {6}});
  EXPECT_THAT(take_asked(), ElementsAre("submit 2 events 6"));
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(GpuWorker, S13HurriesNothingWhenTheEngineIsAwakeAgain) {
  start();
  run_step(begin(1));
  tell(msg::pause{1});
  run_step(begin(2));
  tell(stores(2, {1}));
  EXPECT_THAT(take_asked(), IsEmpty());
  tell(begin(3));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
}

TEST_F(GpuWorker, S13ArmsATimerOnlyWhileSomethingIsDue) {
  start();
  run_step(begin(1));
  EXPECT_FALSE(world.timers_pending());
  tell(stores(1, {1}));
  EXPECT_TRUE(world.timers_pending());
  world.advance(5ms);
  tell(msg::copies_done{{{1, true, 0, {}}}});
  world.advance(200ms);
  EXPECT_FALSE(world.timers_pending());
}

// -- options ------------------------------------------------------------------

TEST(GpuWorkerConfig, SaysWhatTheOptionsSay) {
  auto opts = options{};
  opts.rules = rule_set::reference;
  opts.job_deadline = 77ms;
  opts.idle_delay = 3ms;
  opts.device = device_kind::host_virtual;
  opts.delivery = plan_delivery::by_engine;
  opts.model_fingerprint = "a model";
  opts.order_checks = order_checks::fatal;
  const auto said = worker_config_of(opts, 5, 6);
  EXPECT_EQ(said.rank, 5u);
  EXPECT_EQ(said.incarnation, 6u);
  EXPECT_EQ(said.rule, &core::reference_rules);
  EXPECT_EQ(said.job_deadline, 77ms);
  EXPECT_EQ(said.idle_delay, 3ms);
  EXPECT_TRUE(said.virtual_time);
  EXPECT_EQ(said.delivery, plan_delivery::by_engine);
  EXPECT_EQ(said.model_fingerprint, "a model");
  EXPECT_EQ(said.order_checks, order_checks::fatal);
}

// -- simulated time -----------------------------------------------------------

class GpuWorkerInSimulatedTime : public GpuWorker {
protected:
  GpuWorkerInSimulatedTime() {
    config.virtual_time = true;
    config.job_deadline = 1'000ns;
    config.idle_delay = 50ns;
  }
};

TEST_F(GpuWorkerInSimulatedTime, AnswersATickWithWhatIsDueNextHereOrThere) {
  start();
  tell(msg::tick{10});
  EXPECT_THAT(take_asked(), ElementsAre("tick 10"));
  EXPECT_THAT(told.ticks, IsEmpty());
  tell(msg::device_ticked{300});
  ASSERT_EQ(told.ticks.size(), 1u);
  EXPECT_EQ(told.ticks[0].rank, 3u);
  EXPECT_EQ(told.ticks[0].incarnation, 7u);
  EXPECT_EQ(told.ticks[0].next_due, 300);
  run_step(begin(1));
  tell(stores(1, {1}));
  tell(msg::tick{20});
  tell(msg::device_ticked{never});
  EXPECT_EQ(told.ticks.back().next_due, 60);
  EXPECT_FALSE(world.timers_pending());
}

TEST_F(GpuWorkerInSimulatedTime, S13HandsStoresOverAtTheirMoment) {
  start();
  run_step(begin(1));
  tell(stores(1, {1}));
  tell(msg::tick{49});
  tell(msg::device_ticked{never});
  EXPECT_EQ(told.ticks.back().next_due, 50);
  EXPECT_THAT(take_asked(), ElementsAre("tick 49"));
  // One long jump: the device is where the stores begin when it gets them.
  tell(msg::tick{500});
  tell(msg::device_ticked{never});
  EXPECT_THAT(take_asked(), ElementsAre("tick 50", "submit 1", "tick 500"));
  EXPECT_EQ(told.ticks.size(), 1u);
  tell(msg::device_ticked{never});
  ASSERT_EQ(told.ticks.size(), 2u);
  EXPECT_EQ(told.ticks.back().next_due, 1'050);
}

TEST_F(GpuWorkerInSimulatedTime, S9CopyThatEndsAtItsDeadlineIsInTime) {
  start();
  run_step(begin(1, {1, 2}));
  tell(msg::tick{5'000});
  EXPECT_THAT(take_asked(), ElementsAre("submit 1 2", "tick 1000"));
  tell(msg::copies_done{{{1, true, 0, {}}}});
  tell(msg::device_ticked{never});
  EXPECT_THAT(take_reports(), ElementsAre("1 done", "2 late"));
  EXPECT_THAT(take_asked(), ElementsAre("tick 5000"));
  tell(msg::copies_done{{{2, true, 0, {}}}});
  tell(msg::device_ticked{never});
  EXPECT_THAT(take_reports(), ElementsAre("2 drained"));
  ASSERT_EQ(told.ticks.size(), 1u);
  EXPECT_EQ(told.ticks[0].next_due, never);
}

TEST_F(GpuWorkerInSimulatedTime, S12CountsATickBeforeTheLastOneWasAnswered) {
  ear.expect();
  start();
  tell(msg::tick{10});
  tell(msg::tick{20});
  EXPECT_THAT(ear.take(),
              ElementsAre("S12 a tick came while time moves without "
                          "it: to 20 ns"));
  EXPECT_THAT(take_asked(), ElementsAre("tick 10"));
  tell(msg::device_ticked{never});
  EXPECT_THAT(take_asked(), ElementsAre("tick 20")) << "time goes there";
  tell(msg::device_ticked{never});
  EXPECT_EQ(told.ticks.size(), 1u);
}

TEST_F(GpuWorkerInSimulatedTime, S12CountsADeviceThatMovesUnasked) {
  ear.expect();
  start();
  tell(msg::device_ticked{300});
  EXPECT_THAT(ear.take(), ElementsAre("S12 the device moved in time without "
                                      "being asked"));
  EXPECT_THAT(told.ticks, IsEmpty());
}

TEST_F(GpuWorker, S12CountsATickInRealTime) {
  ear.expect();
  start();
  tell(msg::tick{10});
  EXPECT_THAT(ear.take(),
              ElementsAre("S12 a tick came while time moves without "
                          "it: to 10 ns"));
  EXPECT_THAT(take_asked(), IsEmpty());
}

TEST_F(GpuWorkerInSimulatedTime, AnswersItsLastTickWithoutADevice) {
  start();
  run_step(begin(1, {1}));
  tell(msg::tick{10});
  world.kill(target);
  ASSERT_EQ(told.ticks.size(), 1u);
  EXPECT_EQ(told.ticks[0].next_due, never);
  EXPECT_FALSE(is_alive(uut));
}

TEST_F(GpuWorkerInSimulatedTime, QuitsAtOnceWhenTheSchedulerGoes) {
  start();
  run_step(begin(1, {1}));
  world.kill(boss);
  EXPECT_FALSE(is_alive(uut)) << "time stands still";
}

TEST_F(GpuWorkerInSimulatedTime, StartsInTheMiddleOfIt) {
  config.start_time = 5'000;
  start();
  run_step(begin(1, {1}));
  tell(msg::tick{5'000});
  EXPECT_THAT(take_asked(), ElementsAre("submit 1", "tick 5000"));
  tell(msg::device_ticked{never});
  EXPECT_THAT(take_reports(), IsEmpty()) << "not late";
  EXPECT_EQ(told.ticks.back().next_due, 6'000);
}

// -- plans that the engine carries --------------------------------------------

TEST_F(GpuWorker, TakesAPlanThatTheEngineCarries) {
  start();
  const auto first = encode_plan(begin(1, {1}), stores(1, {2}));
  tell(msg::await_step{1, first});
  EXPECT_THAT(take_ready(), ElementsAre(1));
  tell(msg::end_step{1, {}});
  const auto second
    = encode_plan(begin(2, {}, {4}, {2, 4}), stores(2, {3}));
  tell(msg::await_step{2, second});
  EXPECT_THAT(take_asked(), ElementsAre("submit 1", "submit 2 4", "fence 2 4"));
  EXPECT_THAT(rank.failures, IsEmpty());
}

TEST_F(GpuWorker, KeepsStoresThatOvertakeThePlanTheEngineCarries) {
  start();
  run_step(begin(1));
  tell(stores(2, {3}));
  tell(msg::await_step{
    2, encode_plan(begin(2, {1}), stores(2, {2}))});
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
  tell(msg::end_step{2, {}});
  tell(stores(3, {4}));
  tell(begin(3));
  EXPECT_THAT(take_asked(), ElementsAre("submit 2 3"));
  tell(stores(4, {5}));
  tell(msg::unregister_kv{});
  EXPECT_THAT(take_reports(), ElementsAre("4 failed", "5 failed"));
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(GpuWorker, WaitsForTheSchedulersPlanIfTheEngineCarriesNone) {
  start();
  tell(msg::await_step{1, {}});
  EXPECT_THAT(rank.ready, IsEmpty());
  tell(begin(1));
  EXPECT_THAT(take_ready(), ElementsAre(1));
}

TEST_F(GpuWorker, RefusesToBeginWithoutThePlanThatTheEngineCarries) {
  config.delivery = plan_delivery::by_engine;
  start();
  tell(msg::await_step{1, {}});
  ASSERT_EQ(rank.failures.size(), 1u);
  EXPECT_EQ(rank.failures[0].reason.code, ec::invalid_argument);
  EXPECT_THAT(rank.failures[0].reason.text, HasSubstr("step_plan::bytes"));
}

TEST_F(GpuWorker, AnswersDamagedPlansWithOneSentence) {
  start();
  const auto good = encode_plan(begin(1, {1}), stores(1, {2}));
  std::vector<std::string> wrong{"x", std::string(100, '\0'),
                                 good.substr(0, good.size() - 1), good + "x"};
  for (std::size_t i = 0; i < good.size(); ++i) {
    wrong.push_back(good);
    wrong.back()[i] = static_cast<char>(wrong.back()[i] ^ 0x41);
  }
  for (const auto& bytes : wrong)
    tell(msg::await_step{1, bytes});
  ASSERT_EQ(rank.failures.size(), wrong.size());
  for (const auto& x : rank.failures)
    EXPECT_NE(x.reason.text, "");
  EXPECT_THAT(take_asked(), IsEmpty());
  tell(msg::await_step{1, good});
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
}

TEST_F(GpuWorker, S12RefusesAPlanOfAnotherStepOrTheSameOneTwice) {
  ear.expect();
  start();
  const auto plan = encode_plan(begin(1), stores(1, {}));
  tell(msg::await_step{2, plan});
  ASSERT_EQ(rank.failures.size(), 1u);
  EXPECT_EQ(rank.failures[0].reason.code, ec::invalid_argument);
  tell(msg::await_step{1, plan});
  tell(msg::await_step{1, plan});
  ASSERT_EQ(rank.failures.size(), 2u);
  EXPECT_EQ(rank.failures[1].reason.code, ec::out_of_order);
  EXPECT_THAT(rank.failures[1].reason.text, HasSubstr("begin_step(1)"));
  EXPECT_THAT(take_ready(), ElementsAre(1));
}

} // namespace
} // namespace kvtide
