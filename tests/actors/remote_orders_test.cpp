// SPDX-License-Identifier: Apache-2.0

/// @file
/// Messages of ranks in other processes as only a network brings them: late,
/// too slowly, while the engine does other things.

#include "tests/actors/remote_fixture.hpp"

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/sec.hpp>

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

// -- late ---------------------------------------------------------------------

using RemoteLate = remote_fixture;

TEST_F(RemoteLate, EachMessageOfAnEarlierLifeIsIgnoredAndCounted) {
  start_joined(2);
  const auto old = workers[1].handle;
  cut(1);
  come_back(1, 2);
  add(A, "ab");
  ASSERT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F");
  auto late = std::uint64_t{0};
  const auto comes = [&](auto message) {
    say(old, message); // From whom it was.
    EXPECT_EQ(counters().late_messages, ++late);
    say(1, message); // Or as a lie.
    EXPECT_EQ(counters().late_messages, ++late);
  };
  comes(msg::transfers_done{{{0, 1, 1, job_status::done, 0}}});
  comes(msg::worker_left{1, 1});
  comes(msg::steps_taken{1, 1, 1});
  comes(msg::ticked{1, 1, never});
  comes(msg::worker_ready{1, 1, slots, {}, true});
  comes(msg::chunks_kept{1, 1, {}});
  EXPECT_EQ(counters().order_errors, 0u);
  EXPECT_EQ(counters().stored_chunks, 0u);
  EXPECT_TRUE(state().ranks[1].registered);
  report(0, 0, job_status::done);
  report(1, 0, job_status::done, 2);
  EXPECT_EQ(counters().stored_chunks, 2u) << "none had an effect";
  EXPECT_THAT(notices(), ElementsAre("lost 1/1", "back 1/2"));
}

TEST_F(RemoteLate, EachMessageOfAnEarlierConnectionIsIgnoredAndCounted) {
  start_joined(2);
  const auto old = workers[1].handle;
  come_back(1);
  add(A, "ab");
  ASSERT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F");
  auto late = std::uint64_t{0};
  const auto comes = [&](auto message) {
    say(old, message);
    EXPECT_EQ(counters().late_messages, ++late);
    world.send(uut, message); // Nor is anybody heard who is nobody.
    world.run();
    EXPECT_EQ(counters().late_messages, ++late);
  };
  comes(msg::transfers_done{{{0, 1, 1, job_status::done, 0}}});
  comes(msg::worker_left{1, 1});
  comes(msg::steps_taken{1, 1, 1});
  comes(msg::ticked{1, 1, never});
  EXPECT_EQ(counters().order_errors, 0u);
  EXPECT_TRUE(state().ranks[1].registered);
  EXPECT_EQ(snapshot().jobs.at(0).missing_reports, 2u);
}

TEST_F(RemoteLate, EachReportCounts) {
  start_joined(2);
  const auto old = workers[1].handle;
  come_back(1);
  add(A, "ab");
  ASSERT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F");
  say(old, msg::transfers_done{{{0, 1, 1, job_status::late, 0},
                                {0, 1, 1, job_status::drained, 0}}});
  EXPECT_EQ(counters().late_messages, 2u);
}

TEST_F(RemoteLate, NobodyIsReadyWhoIsNobody) {
  start(2);
  world.send(uut, msg::worker_ready{1, 1, slots, {}, true});
  world.run();
  EXPECT_EQ(counters().late_messages, 1u);
  ready(0);
  ready(1);
  EXPECT_EQ(counters().host_slots, slots);
}

TEST_F(RemoteLate, ReportsOfADeadLifeInThisProcessCountToo) {
  start_joined(2);
  cut(0);
  report(0, 0, job_status::done);
  EXPECT_EQ(counters().late_messages, 1u);
  come_back(0, 2);
  report(0, 0, job_status::done);
  say(0, msg::worker_left{0, 1});
  EXPECT_EQ(counters().late_messages, 3u);
  EXPECT_EQ(counters().order_errors, 0u);
}

TEST_F(RemoteLate, AnErrorOfAWorkerEndsNobodyHere) {
  start_joined(2);
  world.send(caf::actor_cast<caf::actor>(uut),
             caf::make_error(caf::sec::unexpected_message));
  world.run();
  EXPECT_EQ(counters().host_slots, slots);
}

TEST_F(RemoteLate, RanksThatDoNotExistAreErrors) {
  start_joined(2);
  say(1, msg::transfers_done{{{0, 7, 1, job_status::done, 0}}});
  say(1, msg::worker_left{7, 1});
  say(1, msg::steps_taken{7, 1, 1});
  say(1, msg::ticked{7, 1, never});
  EXPECT_EQ(counters().order_errors_by_rule[12], 4u);
  say(1, msg::worker_ready{7, 1, slots, {}, true});
  EXPECT_EQ(counters().order_errors_by_rule[0], 1u);
}

// -- too slow -----------------------------------------------------------------

class RemoteLag : public remote_fixture {
protected:
  void steps(int count) {
    for (auto i = 0; i < count; ++i)
      (void)step();
  }

  void taken(step_id step) {
    say(1, msg::steps_taken{1, 1, step});
  }
};

TEST_F(RemoteLag, Cnt02NoStoresArePlannedForARankThatFallsBehind) {
  start_joined(2);
  add(A, "ab");
  add(B, "xy");
  steps(63);
  EXPECT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F") << "64 behind";
  EXPECT_EQ(step({fresh(B, {4, 5, 6}, 8)}), "S L F") << "65 behind";
  EXPECT_THAT(notices(), ElementsAre("overload"));
  EXPECT_EQ(step({running(B, 8)}), "S L F");
  EXPECT_THAT(notices(), IsEmpty()) << "it was told";
  taken(1);
  EXPECT_EQ(step({running(B, 8)}), "S L F") << "66 behind";
  taken(4);
  EXPECT_EQ(step({running(B, 8)}), "S1 L F") << "64 behind";
  EXPECT_THAT(heard(1).back(), "stores 1");
  EXPECT_EQ(counters().order_errors, 0u);
}

TEST_F(RemoteLag, StepsLoadsAndAnswersGoOn) {
  start_joined(2);
  warm("ab");
  steps(70);
  add(B, "ab");
  ASSERT_EQ(lookup(B, 9), 8);
  allocate(B, {4, 5, 6}, 8);
  EXPECT_EQ(step(), "S L1 F");
  EXPECT_THAT(heard(1).back(), "step 73 L1 F");
}

TEST_F(RemoteLag, NobodyGoesBackOrAhead) {
  start_joined(2);
  steps(70);
  taken(70);
  taken(3);
  EXPECT_EQ(state().ranks[1].taken, 70u);
  taken(71);
  say(1, msg::steps_taken{1, 2, 70});
  EXPECT_EQ(state().ranks[1].taken, 70u);
  EXPECT_EQ(counters().order_errors_by_rule[12], 2u);
}

TEST_F(RemoteLag, BeginsWithTheFirstStepOfEach) {
  start_joined(2);
  last_step = 999;
  add(A, "ab");
  add(B, "xy");
  EXPECT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F");
  steps(100);
  cut(1);
  come_back(1);
  EXPECT_EQ(step({fresh(B, {4, 5, 6}, 8)}), "S1 L F")
    << "the plans before it came back are not its";
}

TEST_F(RemoteLag, DoesNotCountWhereTheEngineDeliversPlans) {
  auto with = plain_options();
  with.delivery = plan_delivery::by_engine;
  start_joined(2, with);
  add(A, "ab");
  steps(100);
  EXPECT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F");
}

// It is gone, which is told otherwise.
TEST_F(RemoteLag, IsNoMatterOfARankThatIsAway) {
  start_joined(2);
  cut(1);
  (void)notices();
  steps(100);
  EXPECT_THAT(notices(), IsEmpty());
}

// -- while the engine does other things ---------------------------------------

using RemoteMoments = remote_fixture;

TEST_F(RemoteMoments, MayJoinWhileTheEngineSleeps) {
  start(2);
  ready(0);
  call(msg::sleep{0, 1'000});
  EXPECT_THAT(answers(), ElementsAre("done"));
  call(msg::wake{});
  EXPECT_THAT(answers().at(0), HasSubstr("rank 1"));
  ready(1);
  EXPECT_EQ(counters().host_slots, slots);
  call(msg::wake{});
  EXPECT_THAT(answers(), ElementsAre("done"));
}

TEST_F(RemoteMoments, MayBeLostAndComeBackWhileTheEngineSleeps) {
  start_joined(2);
  warm("ab");
  call(msg::sleep{0, 1'000});
  cut(1);
  call(msg::wake{});
  EXPECT_THAT(answers(), ElementsAre("done", "done"))
    << "serving goes on without the cache";
  add(B, "ab");
  EXPECT_EQ(lookup(B, 9), 0);
  come_back(1);
  EXPECT_EQ(lookup(B, 9), 8);
}

TEST_F(RemoteMoments, ASleepWaitsForItsCopiesButNotForEver) {
  start_joined(2);
  add(A, "ab");
  ASSERT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F");
  report(0, 0, job_status::done);
  (void)answers();
  cut(1);
  const auto wait = std::chrono::nanoseconds{std::chrono::seconds{1}};
  call(msg::sleep{0, wait.count()});
  EXPECT_THAT(answers(), IsEmpty());
  world.advance(wait);
  EXPECT_THAT(answers(), ElementsAre("done 0"));
}

TEST_F(RemoteMoments, ASleepEndsWhenItHasComeBackAndIsDone) {
  start_joined(2);
  add(A, "ab");
  ASSERT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F");
  report(0, 0, job_status::done);
  (void)answers();
  cut(1);
  call(msg::sleep{0, 1'000'000'000});
  come_back(1);
  EXPECT_THAT(answers(), IsEmpty());
  report(1, 0, job_status::drained);
  EXPECT_THAT(answers(), ElementsAre("done"));
}

TEST_F(RemoteMoments, MayJoinBehindAReset) {
  start(2);
  ready(0);
  call(msg::reset{});
  ready(1);
  EXPECT_THAT(answers(), ElementsAre("done"));
  EXPECT_EQ(counters().host_slots, slots);
  EXPECT_THAT(notices(), IsEmpty());
}

TEST_F(RemoteMoments, AShutdownWaitsForNobodyWhoIsNotThere) {
  start(2);
  ready(0);
  call(msg::shutdown{0, 1'000});
  EXPECT_THAT(answers(), ElementsAre("done"));
  ready(1);
  EXPECT_EQ(counters().order_errors, 0u);
}

TEST_F(RemoteMoments, AShutdownNamesTheCopiesOfWhoIsLost) {
  start_joined(2);
  add(A, "ab");
  ASSERT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F");
  report(0, 0, job_status::done);
  (void)answers();
  cut(1);
  const auto wait = std::chrono::nanoseconds{std::chrono::seconds{1}};
  call(msg::shutdown{0, wait.count()});
  EXPECT_THAT(answers(), IsEmpty());
  world.advance(wait);
  EXPECT_THAT(answers(), ElementsAre("done 0"));
}

// Nobody asks a later life, or one that is away, for what it cannot know.
TEST_F(RemoteMoments, SilenceIsAskedForWhereSomebodyCanAnswer) {
  start_joined(2);
  add(A, "ab");
  ASSERT_EQ(step({fresh(A, {1, 2, 3}, 8)}), "S0 L F");
  report(0, 0, job_status::done);
  cut(1);
  const auto silence = 2 * std::chrono::nanoseconds{opts.job_deadline};
  world.advance(silence);
  come_back(1);
  EXPECT_THAT(heard(1), ElementsAre("again silent  late 0"));
  world.advance(silence);
  EXPECT_THAT(heard(1), ElementsAre("again silent  late 0"))
    << "the answer may have been lost";
  report(1, 0, job_status::drained);
  world.advance(silence);
  EXPECT_THAT(heard(1), IsEmpty());
}

} // namespace
} // namespace kvtide::test
