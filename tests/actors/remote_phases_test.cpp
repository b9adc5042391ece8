// SPDX-License-Identifier: Apache-2.0

/// @file
/// Ranks of other processes that are lost, or come back, in the middle of a
/// call.

#include "tests/actors/remote_fixture.hpp"

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

using RemotePhases = remote_fixture;

TEST_F(RemotePhases, LostWhileALookupWaits) {
  start_joined(2);
  warm("ab");
  add(B, "ab");
  begin<lookup_phase>(msg::lookup{0, {{B, 0, 9}}});
  cut_at_once(1);
  EXPECT_EQ(ear.hits.at(0).tokens, 8) << "the call came first (S1)";
  EXPECT_THAT(notices(), ElementsAre("lost 1/1"));
  allocate(B, {4, 5, 6}, 8);
  EXPECT_THAT(notices(), ElementsAre("load_failed 1 from 0"))
    << "no rank has heard of it: its blocks are free";
  EXPECT_EQ(counters().held_slots, 0u);
  EXPECT_EQ(counters().pinned_slots, 0u);
}

TEST_F(RemotePhases, LostWhileAnAllocationWaits) {
  start_joined(2);
  warm("ab");
  add(B, "ab");
  ASSERT_EQ(lookup(B, 9), 8);
  auto taken = allocated{};
  taken.request = B;
  taken.external = 8;
  taken.blocks = {{4, 5, 6}};
  taken.hashed = {{0, 0, 0}};
  begin<allocate_phase>(msg::allocate{0, taken});
  cut_at_once(1);
  EXPECT_THAT(notices(), ElementsAre("lost 1/1", "load_failed 1 from 0"));
  EXPECT_EQ(step(), "S L F") << "nobody hears of it";
  EXPECT_EQ(counters().jobs_in_flight, 0u);
  come_back(1);
  EXPECT_THAT(heard(1), IsEmpty());
}

TEST_F(RemotePhases, LostWhileAStepWaitsForRequests) {
  start_joined(2);
  add(A, "ab");
  begin<step_phase>(
    msg::step{0, {++last_step, {fresh(A, {1, 2, 3}, 8)}, {}, {}}});
  cut_at_once(1);
  EXPECT_THAT(answers(), ElementsAre("step 1"));
  EXPECT_EQ(plan(), "S0 L F");
  EXPECT_THAT(heard(0), ElementsAre("step 1 L F", "stores 0"));
  EXPECT_THAT(heard(1), ElementsAre("step 1 L F"));
  EXPECT_THAT(notices(), ElementsAre("lost 1/1"));
  report(0, 0, job_status::done);
  EXPECT_EQ(counters().failed_jobs, 1u);
  EXPECT_EQ(counters().quarantined_slots, 2u) << "who knows";
  come_back(1);
  EXPECT_THAT(heard(1), ElementsAre("again silent  late 0"));
  report(1, 0, job_status::drained);
  EXPECT_EQ(counters().free_slots, slots);
}

TEST_F(RemotePhases, LostWhileAFailedStoreIsRolledBack) {
  start_joined(2);
  add(A, "ab");
  ASSERT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F");
  report(0, 0, job_status::failed);
  world.send_as(workers[1].handle, uut,
                msg::transfers_done{{{0, 1, 1, job_status::failed, 0}}});
  while (!std::holds_alternative<rollback_phase>(state().phase)
         && world.ready() > 0)
    world.step(0);
  cut_at_once(1);
  EXPECT_THAT(notices(), ElementsAre("lost 1/1"));
  EXPECT_EQ(counters().free_slots, slots) << "both have reported";
  EXPECT_EQ(counters().jobs_in_flight, 0u);
}

TEST_F(RemotePhases, LostWhileOtherAnswersAreAwaited) {
  start_joined(2);
  add(A, "ab");
  begin<report_phase>(msg::get_stats{});
  cut_at_once(1);
  EXPECT_THAT(notices(), ElementsAre("lost 1/1"));
  EXPECT_EQ(ear.counters.host_slots, slots);
  come_back(1);
  begin<events_phase>(msg::take_events{});
  cut_at_once(1);
  come_back(1);
  begin<explain_phase>(msg::explain{0, A});
  cut_at_once(1);
  EXPECT_THAT(notices(), ElementsAre("back 1/1 same", "lost 1/1",
                                     "back 1/1 same", "lost 1/1"));
}

TEST_F(RemotePhases, TimeWaitsForNoRankThatIsLost) {
  auto with = plain_options();
  with.device = device_kind::host_virtual;
  start_joined(3, with);
  begin<advance_phase>(msg::advance{0, 0});
  world.run();
  say(0, msg::ticked{0, 1, never});
  cut(1);
  EXPECT_THAT(answers(), IsEmpty()) << "rank 2 is there";
  say(2, msg::ticked{2, 1, never});
  EXPECT_THAT(answers(), ElementsAre("done"));
  EXPECT_THAT(notices(), ElementsAre("lost 1/1"));
}

TEST_F(RemotePhases, TimeWaitsForNoConnectionThatWasReplaced) {
  auto with = plain_options();
  with.device = device_kind::host_virtual;
  start_joined(2, with);
  const auto old = workers[1].handle;
  begin<advance_phase>(msg::advance{0, 0});
  world.run();
  say(0, msg::ticked{0, 1, never});
  come_back(1);
  EXPECT_THAT(answers(), ElementsAre("done"));
  EXPECT_THAT(notices(), ElementsAre("lost 1/1", "back 1/1 same"));
  begin<advance_phase>(msg::advance{0, 0});
  world.run();
  EXPECT_THAT(heard(1), ElementsAre("tick"));
  say(0, msg::ticked{0, 1, never});
  say(old, msg::ticked{1, 1, never});
  EXPECT_THAT(answers(), IsEmpty()) << "that was about another tick";
  say(1, msg::ticked{1, 1, never});
  EXPECT_THAT(answers(), ElementsAre("done"));
  EXPECT_EQ(counters().late_messages, 1u);
  EXPECT_EQ(counters().order_errors, 0u);
}

// The connection is replaced twice before the first one's turn comes.
TEST_F(RemotePhases, ConnectionsThatFollowEachOtherTakeTheirTurns) {
  start_joined(2);
  add(A, "ab");
  ASSERT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F");
  report(0, 0, job_status::done);
  begin<report_phase>(msg::get_stats{});
  for (auto i = 0; i < 2; ++i) {
    logs.emplace_back();
    workers[1].handle = world.launch(listening_worker, &logs.back());
    workers[1].log = &logs.back();
    world.send_as(workers[1].handle, uut,
                  msg::worker_ready{1, 1, slots, {}, true});
  }
  world.send_as(workers[1].handle, uut,
                msg::transfers_done{{{0, 1, 1, job_status::drained, 0}}});
  world.run();
  EXPECT_THAT(notices(), ElementsAre("lost 1/1", "back 1/1 same", "lost 1/1",
                                     "back 1/1 same"));
  EXPECT_EQ(counters().free_slots, slots);
  EXPECT_EQ(counters().late_messages, 0u);
  EXPECT_EQ(counters().order_errors, 0u);
  EXPECT_EQ(state().ranks[1].worker, workers[1].handle);
}

} // namespace
} // namespace kvtide::test
