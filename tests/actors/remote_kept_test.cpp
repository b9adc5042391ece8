// SPDX-License-Identifier: Apache-2.0

/// @file
/// Host pools that outlive the process of their rank: what the next life says
/// that it has found.

#include "tests/actors/remote_fixture.hpp"

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

class RemoteKept : public remote_fixture {
protected:
  /// A process of the next life of rank 1 has started.
  void next_process() {
    cut(1);
    connect(1);
  }

  /// How much of "abcd" is found.
  token_count found() {
    static auto id = request_id{1'000};
    add(++id, "abcd");
    return lookup(id, 17);
  }
};

TEST_F(RemoteKept, WhatItNamesIsFoundAgainAndNothingElse) {
  start_joined(2);
  warm("abcd");
  next_process();
  say(1, kept(1, 2, "abcd", 0, {0, 1}));
  say(1, kept(1, 2, "abcd", 2, {2}));
  EXPECT_EQ(found(), 0) << "it is not ready";
  ready(1, 2);
  EXPECT_THAT(notices(), ElementsAre("lost 1/1", "back 1/2"));
  EXPECT_THAT(events(), ElementsAre(4u));
  EXPECT_EQ(found(), 12);
  EXPECT_EQ(counters().free_slots, slots - 3);
  EXPECT_EQ(counters().order_errors, 0u);
}

TEST_F(RemoteKept, RequestsStoreAgainWhatIsLost) {
  start_joined(2);
  add(A, "abcd");
  ASSERT_EQ(step({fresh(A, {1, 2, 3, 4, 5}, 16)}), "S0 L F");
  done(0);
  ASSERT_THAT(snapshot().next.at(A), ElementsAre(4u));
  next_process();
  say(1, kept(1, 2, "abcd", 0, {0, 1, 2}));
  ready(1, 2);
  EXPECT_EQ(step({running(A, 16)}), "S1 L F");
  ASSERT_EQ(ear.plan.stores.at(0).rows.size(), 1u);
  EXPECT_EQ(ear.plan.stores.at(0).rows[0].chunk, 3u);
  EXPECT_THAT(ear.plan.stores.at(0).rows[0].blocks, ElementsAre(4u));
  EXPECT_EQ(ear.plan.stores.at(0).rows[0].slot, 3u);
  report(0, 1, job_status::done);
  report(1, 1, job_status::done, 2);
  EXPECT_EQ(found(), 16);
  EXPECT_EQ(counters().order_errors, 0u);
}

TEST_F(RemoteKept, AKeyThatIsNotThereAnyMoreIsNotBelieved) {
  start_joined(2);
  warm("abcd");
  next_process();
  say(1, kept(1, 2, "abcd", 0, {1, 0, 2}));
  auto other = kept(1, 2, "abcd", 3, {3});
  other.chunks[0].digest_high += 1;
  say(1, other);
  ready(1, 2);
  EXPECT_EQ(found(), 0);
  EXPECT_EQ(counters().free_slots, slots - 1) << "chunk 2 alone";
  EXPECT_EQ(counters().order_errors, 0u) << "it may be older than the pool";
}

TEST_F(RemoteKept, SlotsOutOfRangeAndSlotsNamedTwiceAreIgnoredAndCounted) {
  start_joined(2);
  warm("abcd");
  next_process();
  say(1, kept(1, 2, "abcd", 0, {0, 1}));
  say(1, kept(1, 2, "abcd", 1, {0}));
  say(1, kept(1, 2, "abcd", 1, {1}));
  say(1, kept(1, 2, "abcd", 2, {slots}));
  ready(1, 2);
  EXPECT_EQ(counters().order_errors_by_rule[0], 3u);
  EXPECT_EQ(found(), 0) << "nothing is known of slot 0";
  EXPECT_EQ(counters().free_slots, slots - 1) << "slot 1 was confirmed";
}

TEST_F(RemoteKept, NamesWhatCountsForItsOwnLifeOnly) {
  start_joined(2);
  warm("abcd");
  next_process();
  say(1, kept(1, 2, "abcd", 0, {0, 1, 2, 3}));
  connect(1); // That process died before it was ready.
  ready(1, 3);
  EXPECT_EQ(found(), 0);
  EXPECT_EQ(state().ranks[1].found.incarnation, 0u) << "nobody needs it";
  EXPECT_EQ(counters().free_slots, slots);
}

TEST_F(RemoteKept, BeginsAgainOverAnotherConnection) {
  start_joined(2);
  warm("abcd");
  next_process();
  say(1, kept(1, 2, "abcd", 0, {0, 1, 2, 3}));
  connect(1);
  say(1, kept(1, 2, "abcd", 0, {0, 1}));
  ready(1, 2);
  EXPECT_EQ(found(), 8);
  EXPECT_EQ(counters().order_errors, 0u) << "no slot was named twice";
}

TEST_F(RemoteKept, NamesOfAnEarlierOrReadyLifeAreLate) {
  start_joined(2);
  warm("abcd");
  say(1, kept(1, 1, "abcd", 0, {0}));
  EXPECT_EQ(counters().late_messages, 1u) << "it is ready";
  next_process();
  say(1, kept(1, 3, "abcd", 0, {0}));
  say(1, kept(1, 2, "abcd", 1, {1}));
  EXPECT_EQ(counters().late_messages, 2u) << "another life has begun";
  ready(1, 3);
  EXPECT_EQ(found(), 4);
  EXPECT_EQ(counters().order_errors, 0u);
}

TEST_F(RemoteKept, ALifeThatIsReadyNamesNothingMoreEvenBeforeItsTurn) {
  start_joined(2);
  warm("abcd");
  next_process();
  begin<report_phase>(msg::get_stats{});
  world.send_as(workers[1].handle, uut,
                msg::worker_ready{1, 2, slots, {}, true});
  world.send_as(workers[1].handle, uut, kept(1, 2, "abcd", 0, {0, 1}));
  world.run();
  EXPECT_EQ(counters().late_messages, 1u);
  EXPECT_EQ(found(), 0);
}

TEST_F(RemoteKept, TheSameLifeKeepsItAllWhateverItNames) {
  start_joined(2);
  warm("abcd");
  cut(1);
  connect(1);
  say(1, kept(1, 1, "abcd", 0, {0}));
  ready(1);
  EXPECT_EQ(found(), 16);
}

TEST_F(RemoteKept, NothingIsKeptBeforeThePoolIsOpen) {
  start(2);
  ready(0);
  say(1, kept(1, 1, "abcd", 0, {0, 1}));
  ready(1);
  EXPECT_EQ(counters().host_slots, slots);
  EXPECT_EQ(counters().free_slots, slots);
  EXPECT_EQ(counters().order_errors, 0u);
  say(1, kept(7, 1, "abcd", 0, {0}));
  EXPECT_EQ(counters().order_errors_by_rule[12], 1u);
}

TEST_F(RemoteKept, EachRankThatWasLostDecides) {
  start_joined(3);
  warm("abcd");
  cut(1);
  cut(2);
  connect(1);
  say(1, kept(1, 2, "abcd", 0, {0, 1, 2}));
  ready(1, 2);
  connect(2);
  say(2, kept(2, 2, "abcd", 0, {0, 1}));
  say(2, kept(2, 2, "abcd", 3, {3}));
  EXPECT_EQ(found(), 0);
  ready(2, 2);
  EXPECT_EQ(found(), 8);
  EXPECT_EQ(counters().free_slots, slots - 2);
}

// The label of its slots may be older, or of a copy that was half done.
TEST_F(RemoteKept, S8NothingIsKeptOfAStoreInFlight) {
  start_joined(2);
  add(A, "ab");
  ASSERT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F");
  report(1, 0, job_status::done);
  next_process();
  say(1, kept(1, 2, "ab", 0, {0, 1}));
  ready(1, 2);
  EXPECT_EQ(counters().quarantined_slots, 2u);
  report(0, 0, job_status::done);
  EXPECT_EQ(counters().quarantined_slots, 0u);
  EXPECT_EQ(counters().free_slots, slots);
  EXPECT_EQ(counters().stored_chunks, 0u);
  EXPECT_EQ(counters().order_errors, 0u);
}

// Rank 0 still reads these slots, so nobody may write them.
TEST_F(RemoteKept, S8SlotsThatALoadReadsAreNotHandedOut) {
  start_joined(2);
  warm("ab");
  add(B, "ab");
  ASSERT_EQ(lookup(B, 9), 8);
  allocate(B, {4, 5, 6}, 8);
  ASSERT_EQ(step(), "S L1 F");
  next_process();
  say(1, kept(1, 2, "ab", 0, {0, 1}));
  ready(1, 2);
  EXPECT_THAT(events(), ElementsAre(1u, 2u));
  EXPECT_EQ(counters().quarantined_slots, 2u);
  EXPECT_THAT(notices(), ElementsAre("lost 1/1", "back 1/2"))
    << "rank 0 has not reported";
  report(0, 1, job_status::done);
  EXPECT_THAT(notices(), ElementsAre("load_failed 1 from 0"))
    << "no copy runs any more: the blocks are free";
  EXPECT_EQ(counters().free_slots, slots);
  EXPECT_EQ(counters().order_errors, 0u);
}

TEST_F(RemoteKept, R11APromiseEndsAndWhatItHeldStays) {
  start_joined(2);
  warm("abcd");
  EXPECT_EQ(found(), 16);
  EXPECT_EQ(counters().held_slots, 4u);
  next_process();
  say(1, kept(1, 2, "abcd", 0, {0, 1, 2, 3}));
  ready(1, 2);
  EXPECT_EQ(counters().held_slots, 0u);
  EXPECT_EQ(found(), 16);
  EXPECT_EQ(counters().order_errors, 0u);
}

TEST_F(RemoteKept, ARankOfThisProcessMayFindItsPoolAgain) {
  start_joined(2);
  warm("abcd");
  cut(0);
  connect(0);
  say(0, kept(0, 2, "abcd", 0, {0, 1}));
  ready(0, 2);
  EXPECT_THAT(notices(), ElementsAre("lost 0/1", "back 0/2"));
  EXPECT_EQ(found(), 8);
}

} // namespace
} // namespace kvtide::test
