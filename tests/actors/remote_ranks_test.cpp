// SPDX-License-Identifier: Apache-2.0

/// @file
/// Ranks of other processes that are lost and come back: the same life, or
/// another one.

#include "tests/actors/remote_fixture.hpp"

#include <caf/actor_cast.hpp>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

class RemoteRanks : public remote_fixture {
protected:
  /// A store of two chunks that rank 0 has done, and nobody else.
  void store_in_flight() {
    add(A, "ab");
    ASSERT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F");
    report(0, 0, job_status::done);
  }

  /// A load of two chunks into blocks 4 and 5 that rank 0 has done.
  void load_in_flight() {
    warm("ab");
    add(B, "ab");
    ASSERT_EQ(lookup(B, 9), 8);
    allocate(B, {4, 5, 6}, 8);
    ASSERT_EQ(step(), "S L1 F");
    report(0, 1, job_status::done);
  }
};

TEST_F(RemoteRanks, S9AJobIsCompleteWhenEachHasReportedOnce) {
  start_joined(3);
  store_in_flight();
  EXPECT_THAT(heard(1), ElementsAre("step 1 L F", "stores 0"));
  EXPECT_THAT(heard(2), ElementsAre("step 1 L F", "stores 0"));
  report(1, 0, job_status::done);
  EXPECT_EQ(counters().stored_chunks, 0u);
  report(2, 0, job_status::done);
  EXPECT_EQ(counters().stored_chunks, 2u);
}

// -- lost ---------------------------------------------------------------------

// Its process may only be out of reach: its copy still reads and writes.
TEST_F(RemoteRanks, S8SlotsOfAStoreStayOutOfUseWhenItIsLost) {
  start_joined(2);
  store_in_flight();
  cut(1);
  EXPECT_THAT(notices(), ElementsAre("lost 1/1"));
  const auto after = counters();
  EXPECT_EQ(after.failed_jobs, 1u);
  EXPECT_EQ(after.quarantined_slots, 2u);
  EXPECT_EQ(after.free_slots, 6u);
  EXPECT_EQ(after.jobs_in_flight, 1u) << "known until its copy is over";
  EXPECT_THAT(snapshot().jobs, IsEmpty()) << "but it has its outcome";
  EXPECT_THAT(snapshot().next.at(A), ElementsAre(0u)) << "R8";
}

TEST_F(RemoteRanks, NothingIsStoredOrFoundWhileItIsAwayAndStepsGoOn) {
  start_joined(2);
  warm("ab");
  cut(1);
  add(B, "ab");
  EXPECT_EQ(lookup(B, 9), 0);
  add(C, "xy");
  EXPECT_EQ(step({fresh(C, {4, 5, 6}, 8)}), "S L F");
  EXPECT_THAT(heard(0), ElementsAre("step 3 L F"));
  EXPECT_THAT(heard(1), IsEmpty());
  come_back(1);
  EXPECT_EQ(step({running(C, 8)}), "S1 L F") << "what was refused is stored";
  EXPECT_THAT(heard(1), ElementsAre("step 4 L F", "stores 1"));
}

// -- the same life ------------------------------------------------------------

TEST_F(RemoteRanks, TheSameLifeSaysWhenItsStoreIsOver) {
  start_joined(2);
  store_in_flight();
  cut(1);
  come_back(1);
  EXPECT_THAT(notices(), ElementsAre("lost 1/1", "back 1/1 same"));
  EXPECT_THAT(heard(1), ElementsAre("again silent  late 0"));
  EXPECT_EQ(counters().quarantined_slots, 2u);
  EXPECT_EQ(step({running(A, 8)}), "S1 L F") << "into other slots";
  EXPECT_EQ(ear.plan.stores.at(0).rows[0].slot, 2u);
  report(1, 0, job_status::drained);
  EXPECT_EQ(counters().quarantined_slots, 0u);
  done(1);
  EXPECT_EQ(counters().stored_chunks, 2u);
  EXPECT_EQ(counters().jobs_in_flight, 0u);
  EXPECT_EQ(counters().order_errors, 0u);
}

TEST_F(RemoteRanks, ChunksOfTheSameLifeStayValid) {
  start_joined(2);
  warm("ab");
  cut(1);
  come_back(1);
  EXPECT_THAT(notices(), ElementsAre("lost 1/1", "back 1/1 same"));
  EXPECT_THAT(heard(1), IsEmpty()) << "nothing is asked, as nothing is late";
  EXPECT_THAT(events(), IsEmpty());
  add(B, "ab");
  EXPECT_EQ(lookup(B, 9), 8);
}

// CNT-01: until it says so, the engine may not use these blocks.
TEST_F(RemoteRanks, Cnt01BlocksOfALoadStayReservedUntilItSaysThatItIsOver) {
  start_joined(2);
  load_in_flight();
  cut(1);
  EXPECT_THAT(notices(),
              ElementsAre("lost 1/1", "load_failed 1 from 0, new blocks"));
  EXPECT_EQ(counters().pinned_slots, 2u);
  come_back(1);
  EXPECT_THAT(notices(), ElementsAre("back 1/1 same"));
  EXPECT_THAT(heard(1), ElementsAre("again silent  late 1"));
  add(C, "x");
  EXPECT_EQ(counters().order_errors, 0u);
  (void)step({fresh(C, {4, 9}, 4)});
  EXPECT_EQ(counters().order_errors_by_rule[7], 1u) << "block 4 is reserved";
  report(1, 1, job_status::drained);
  EXPECT_THAT(notices(), ElementsAre("released 4 5"));
  (void)step({{C, row_kind::resumed, {{5, 9}}, 4, 1, 5}});
  EXPECT_EQ(counters().order_errors_by_rule[7], 1u) << "block 5 is free";
  EXPECT_EQ(counters().pinned_slots, 0u);
}

TEST_F(RemoteRanks, WhatItHadReportedBeforeItWasLostCounts) {
  start_joined(2);
  add(A, "ab");
  ASSERT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F");
  report(1, 0, job_status::done);
  cut(1);
  come_back(1);
  EXPECT_THAT(heard(1), IsEmpty());
  report(0, 0, job_status::done);
  EXPECT_EQ(counters().stored_chunks, 2u);
  add(B, "ab");
  EXPECT_EQ(lookup(B, 9), 8);
}

// Only its connection is lost, and it knows that first.
TEST_F(RemoteRanks, TheSameLifeMayComeBackBeforeItsLossIsNoticed) {
  start_joined(2);
  store_in_flight();
  const auto old = workers[1].handle;
  come_back(1);
  EXPECT_THAT(notices(), ElementsAre("lost 1/1", "back 1/1 same"));
  EXPECT_THAT(heard(1), ElementsAre("again silent  late 0"));
  say(old, msg::transfers_done{{{0, 1, 1, job_status::drained, 0}}});
  EXPECT_EQ(counters().late_messages, 1u);
  EXPECT_EQ(counters().quarantined_slots, 2u) << "its word has no effect";
  world.kill(old);
  EXPECT_THAT(notices(), IsEmpty()) << "heard of too late to matter";
  report(1, 0, job_status::drained);
  EXPECT_EQ(counters().quarantined_slots, 0u);
  EXPECT_EQ(counters().order_errors, 0u);
}

TEST_F(RemoteRanks, RegistersItsMemoryAgainOverTheSameConnection) {
  start_joined(2);
  say(1, msg::worker_left{1, 1});
  ready(1);
  EXPECT_THAT(notices(), IsEmpty());
  EXPECT_EQ(counters().late_messages, 0u);
}

// Whoever carries its messages may be the same on both connections.
TEST_F(RemoteRanks, IsOnAnotherConnectionIfItIsReadyAgainAndNeverLeft) {
  start_joined(2);
  store_in_flight();
  (void)heard(1);
  ready(1);
  EXPECT_THAT(notices(), ElementsAre("lost 1/1", "back 1/1 same"));
  EXPECT_THAT(heard(1), ElementsAre("again silent  late 0"));
  report(1, 0, job_status::drained);
  EXPECT_EQ(counters().free_slots, slots);
}

// -- another life -------------------------------------------------------------

TEST_F(RemoteRanks, ALaterLifeEndsTheCopiesOfTheOneBefore) {
  start_joined(2);
  store_in_flight();
  cut(1);
  EXPECT_EQ(counters().quarantined_slots, 2u);
  come_back(1, 2);
  EXPECT_THAT(notices(), ElementsAre("lost 1/1", "back 1/2"));
  EXPECT_THAT(heard(1), IsEmpty()) << "it knows nothing of them";
  EXPECT_EQ(counters().quarantined_slots, 0u);
  EXPECT_EQ(counters().jobs_in_flight, 0u);
  EXPECT_EQ(step({running(A, 8)}), "S1 L F");
  EXPECT_EQ(counters().order_errors, 0u);
}

TEST_F(RemoteRanks, ALaterLifeReleasesBlocksOfLoads) {
  start_joined(2);
  load_in_flight();
  cut(1);
  (void)notices();
  come_back(1, 2);
  EXPECT_THAT(notices(), ElementsAre("released 4 5", "back 1/2"));
  EXPECT_EQ(counters().pinned_slots, 0u);
  EXPECT_EQ(counters().free_slots, slots);
}

TEST_F(RemoteRanks, NothingOfAnotherLifeIsFound) {
  start_joined(2);
  warm("ab");
  cut(1);
  come_back(1, 2);
  EXPECT_THAT(events(), ElementsAre(1u, 2u));
  add(B, "ab");
  EXPECT_EQ(lookup(B, 9), 0);
}

TEST_F(RemoteRanks, ALaterLifeNeedsNotWaitForTheLossOfTheOneBefore) {
  start_joined(2);
  store_in_flight();
  come_back(1, 2);
  EXPECT_THAT(notices(), ElementsAre("lost 1/1", "back 1/2"));
  EXPECT_EQ(counters().quarantined_slots, 0u);
}

// Rank 0 still reads the blocks and writes the slots of the job.
TEST_F(RemoteRanks, S11JobsOfOtherRanksOnlyReturnTheirSlotsThen) {
  start_joined(2);
  add(A, "ab");
  ASSERT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F");
  cut(1);
  come_back(1, 2);
  EXPECT_EQ(counters().quarantined_slots, 2u);
  EXPECT_EQ(step({running(A, 8)}), "S1 L F0") << "it is flushed";
  report(0, 0, job_status::done);
  EXPECT_EQ(counters().quarantined_slots, 0u);
  EXPECT_EQ(counters().stored_chunks, 0u);
  report(0, 1, job_status::done);
  report(1, 1, job_status::done, 2);
  EXPECT_EQ(counters().stored_chunks, 2u);
  EXPECT_EQ(counters().order_errors, 0u);
}

TEST_F(RemoteRanks, ALifeWithFewerSlotsIsRefused) {
  start_joined(2);
  cut(1);
  connect(1);
  say(1, msg::worker_ready{1, 2, slots - 1, {}, true});
  EXPECT_THAT(notices(), ElementsAre("lost 1/1"));
  EXPECT_EQ(counters().order_errors_by_rule[0], 1u);
}

// The end of an actor there says nothing about copies there.
TEST_F(RemoteRanks, NobodyHereKnowsWhenTheCopiesOfItsDeviceEnd) {
  start(2);
  ready(0);
  const auto device = world.spawn(mute<gpu_worker_actor>);
  say(1, msg::worker_ready{
           1, 1, slots, caf::actor_cast<caf::strong_actor_ptr>(device), true});
  store_in_flight();
  cut(1);
  world.kill(device);
  EXPECT_EQ(counters().quarantined_slots, 2u);
}

// -- more than one ------------------------------------------------------------

TEST_F(RemoteRanks, CopiesAreOverWhenEachRankThatWasLostHasSaidSo) {
  start_joined(3);
  store_in_flight();
  cut(1);
  EXPECT_EQ(counters().failed_jobs, 0u) << "rank 2 has not reported";
  cut(2);
  EXPECT_EQ(counters().failed_jobs, 1u);
  EXPECT_THAT(notices(), ElementsAre("lost 1/1", "lost 2/1"));
  come_back(1);
  report(1, 0, job_status::drained);
  EXPECT_EQ(counters().quarantined_slots, 2u);
  add(B, "ab");
  EXPECT_EQ(lookup(B, 9), 0);
  come_back(2, 2);
  EXPECT_THAT(notices(), ElementsAre("back 1/1 same", "back 2/2"));
  EXPECT_EQ(counters().quarantined_slots, 0u);
  EXPECT_EQ(counters().jobs_in_flight, 0u);
}

TEST_F(RemoteRanks, AnotherLifeOfOneEndsNoCopiesOfTheOther) {
  start_joined(3);
  store_in_flight();
  cut(1);
  cut(2);
  come_back(2, 2);
  EXPECT_EQ(counters().quarantined_slots, 2u) << "of rank 1, after a reset";
  come_back(1);
  EXPECT_THAT(heard(1), ElementsAre("again silent  late 0"));
  report(1, 0, job_status::drained);
  EXPECT_EQ(counters().quarantined_slots, 0u);
  EXPECT_EQ(counters().free_slots, slots);
  EXPECT_EQ(counters().order_errors, 0u);
}

TEST_F(RemoteRanks, S11AResetWhileItIsAwayLeavesItsCopiesToIt) {
  start_joined(2);
  store_in_flight();
  cut(1);
  call(msg::reset{});
  EXPECT_EQ(counters().quarantined_slots, 2u);
  come_back(1);
  EXPECT_THAT(heard(1), ElementsAre("again silent  late 0"));
  report(1, 0, job_status::drained);
  EXPECT_EQ(counters().quarantined_slots, 0u);
  EXPECT_EQ(counters().free_slots, slots);
}

// A late copy that was told of before the loss is one more of those.
TEST_F(RemoteRanks, AsksForCopiesThatWereLateBeforeItWasLost) {
  start_joined(2);
  store_in_flight();
  report(1, 0, job_status::late);
  cut(1);
  come_back(1);
  EXPECT_THAT(heard(1), ElementsAre("again silent  late 0"));
}

} // namespace
} // namespace kvtide::test
