// SPDX-License-Identifier: Apache-2.0

/// @file
/// A worker whose scheduler is in another process: the orders in which a
/// connection may be lost and come back.

#include "actors/alive.hpp"
#include "messages/plan_bytes.hpp"
#include "tests/actors/worker_fixture.hpp"
#include "tests/support/wire.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace kvtide {
namespace {

using test::begin;
using test::side;
using test::stores;

class RemoteWorker : public test::worker_fixture {
protected:
  RemoteWorker() {
    config.remote = true;
    config.incarnation = 0;
    target = world.spawn(test::fake_device, &asked);
    boss = world.spawn(test::fake_scheduler, &told);
    rank_side = world.spawn(test::fake_rank_side, &rank);
  }

  /// No scheduler is known yet.
  void spawn() {
    uut = world.spawn(gpu_worker, config, target, scheduler_worker_port{},
                      rank_side);
  }

  void register_kv() {
    say(msg::register_kv{memory});
    say(msg::memory_registered{10, 4'096, {}, {}});
  }

  /// Takes part, and is asked for no step yet.
  void start() {
    spawn();
    register_kv();
    connect();
    asked.clear();
  }

  /// A connection is there; its attach comes now.
  void connect(incarnation_id incarnation = 7, std::uint64_t epoch = 1) {
    auto& line = lines.emplace_back(world);
    far_boss = line.add(boss, side::engine);
    far_worker = line.add(uut, side::rank);
    say(msg::attach{incarnation, epoch,
                    caf::actor_cast<caf::strong_actor_ptr>(far_boss)});
  }

  void cut() {
    lines.back().cut();
    world.run();
  }

  /// From the rank side, the device, or the link.
  template <class Message>
  void say(Message message) {
    world.send(uut, std::move(message));
    flow();
  }

  /// From the scheduler, over the last connection.
  template <class Message>
  void plan(Message message) {
    world.send_as(boss, far_worker, std::move(message));
    flow();
  }

  void flow() {
    world.run();
    for (auto& line : lines)
      line.flow();
  }

  /// The rank side runs a step that has a plan.
  void run_step(msg::begin_step step) {
    const auto number = step.step;
    plan(std::move(step));
    compute(number);
  }

  /// The rank side runs a step.
  void compute(step_id step) {
    say(msg::await_step{step, {}});
    say(msg::end_step{step, {}});
  }

  void end(job_id job) {
    say(msg::copies_done{{{job, true, 0, {}}}});
  }

  rank_side_actor rank_side;
  std::deque<test::wire> lines;
  scheduler_worker_port far_boss;
  gpu_worker_actor far_worker;
};

// -- joining ------------------------------------------------------------------

TEST_F(RemoteWorker, RegistersBeforeASchedulerIsThere) {
  spawn();
  register_kv();
  EXPECT_THAT(take_asked(), ElementsAre("register"));
  ASSERT_EQ(rank.registered.size(), 1u);
  EXPECT_EQ(rank.registered[0].reason.code, ec::none);
  connect(9);
  ASSERT_EQ(told.ready.size(), 1u);
  EXPECT_EQ(told.ready[0].rank, 3u);
  EXPECT_EQ(told.ready[0].incarnation, 9u) << "as the door counted";
  EXPECT_EQ(told.ready[0].slots, 10u);
  EXPECT_TRUE(told.ready[0].remote);
  EXPECT_EQ(told.ready[0].device, nullptr);
}

TEST_F(RemoteWorker, SaysThatItIsReadyWhenItHasRegistered) {
  spawn();
  connect();
  EXPECT_THAT(told.ready, IsEmpty());
  register_kv();
  EXPECT_EQ(told.ready.size(), 1u);
}

TEST_F(RemoteWorker, RegistersWhileTheConnectionIsLost) {
  spawn();
  connect();
  say(msg::register_kv{memory});
  cut();
  say(msg::memory_registered{10, 4'096, {}, {}});
  EXPECT_EQ(rank.registered.size(), 1u);
  EXPECT_THAT(told.ready, IsEmpty());
  connect();
  EXPECT_EQ(told.ready.size(), 1u);
}

TEST_F(RemoteWorker, UnregistersWithoutAScheduler) {
  start();
  cut();
  say(msg::unregister_kv{});
  say(msg::memory_unregistered{});
  EXPECT_EQ(rank.unregistered, 1u);
  EXPECT_THAT(told.left, IsEmpty());
  connect();
  EXPECT_EQ(told.ready.size(), 1u) << "no memory, no plans";
  register_kv();
  EXPECT_EQ(told.ready.size(), 2u);
}

TEST_F(RemoteWorker, TellsTheSchedulerThatItsMemoryGoes) {
  start();
  say(msg::unregister_kv{});
  EXPECT_EQ(told.left.size(), 1u);
}

TEST_F(RemoteWorker, SaysHowFarItIs) {
  start();
  for (step_id step = 3; step < 20; ++step)
    run_step(begin(step));
  auto steps = std::vector<step_id>{};
  for (const auto& x : told.taken) {
    EXPECT_EQ(x.rank, 3u);
    EXPECT_EQ(x.incarnation, 7u);
    steps.push_back(x.step);
  }
  EXPECT_THAT(steps, ElementsAre(8, 16));
}

TEST_F(RemoteWorker, TakesNoticeOfNoNonsense) {
  spawn();
  say(msg::attach{1, 1, nullptr});
  world.send(caf::actor_cast<caf::actor>(uut), std::string{"what"});
  flow();
  EXPECT_TRUE(is_alive(uut));
  EXPECT_FALSE(state().scheduler);
}

// -- steps without a plan -----------------------------------------------------

TEST_F(RemoteWorker, StepsGoOnBeforeASchedulerIsThere) {
  spawn();
  register_kv();
  compute(4);
  compute(5);
  EXPECT_THAT(take_ready(), ElementsAre(4, 5));
  EXPECT_THAT(rank.failures, IsEmpty());
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(RemoteWorker, StepsThatWerePlannedForTheOthersGoOn) {
  told.first_planned = 5;
  start();
  compute(3);
  compute(4);
  say(msg::await_step{5, {}});
  EXPECT_THAT(take_ready(), ElementsAre(3, 4))
    << "5 has a plan, which will come";
  plan(begin(5, {1}));
  EXPECT_THAT(take_ready(), ElementsAre(5));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
}

TEST_F(RemoteWorker, NoStepGoesOnIfAllArePlannedForThisRank) {
  start();
  say(msg::await_step{4, {}});
  EXPECT_THAT(take_ready(), IsEmpty());
  plan(begin(4, {1}));
  EXPECT_THAT(take_ready(), ElementsAre(4));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
}

TEST_F(RemoteWorker, StepsWaitUntilItIsKnownWhetherTheyHavePlans) {
  told.keeps_waiting = true;
  start();
  say(msg::await_step{4, {}});
  say(msg::await_step{5, {}});
  EXPECT_THAT(take_ready(), IsEmpty());
  plan(msg::seat{1, {}, 5});
  EXPECT_THAT(take_ready(), ElementsAre(4));
  plan(begin(5, {1}));
  say(msg::end_step{4, {}});
  EXPECT_THAT(take_ready(), ElementsAre(5));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
}

TEST_F(RemoteWorker, StepsThatWaitForAnAnswerGoOnWithoutOne) {
  told.keeps_waiting = true;
  start();
  say(msg::await_step{4, {}});
  cut();
  EXPECT_THAT(take_ready(), ElementsAre(4));
  say(msg::end_step{4, {}});
  connect();
  say(msg::await_step{5, {}});
  EXPECT_THAT(take_ready(), IsEmpty());
  plan(msg::seat{2, "no room", 0});
  EXPECT_THAT(take_ready(), ElementsAre(5));
  EXPECT_THAT(rank.failures.back().reason.text, "no room");
}

TEST_F(RemoteWorker, StepsGoOnIfTheRankIsRefusedLater) {
  start();
  run_step(begin(4));
  plan(begin(5));
  plan(begin(6, {1}));
  say(msg::unregister_kv{});
  say(msg::memory_unregistered{});
  told.keeps_waiting = true;
  register_kv();
  plan(msg::seat{2, "too few slots", 0});
  take_asked();
  say(msg::end_step{5, {}});
  compute(6);
  compute(7);
  EXPECT_THAT(take_asked(), IsEmpty());
  EXPECT_THAT(take_ready(), ElementsAre(4, 5, 6, 7));
}

TEST_F(RemoteWorker, RegisteringAgainMissesNoSteps) {
  start();
  run_step(begin(4));
  say(msg::unregister_kv{});
  say(msg::memory_unregistered{});
  plan(begin(5));
  told.first_planned = 6;
  register_kv();
  plan(begin(6, {1}));
  compute(5);
  EXPECT_THAT(take_ready(), ElementsAre(4, 5, 6)) << "plans came all the time";
}

TEST_F(RemoteWorker, S5AStepWithoutAPlanWaitsForEveryCopy) {
  start();
  run_step(begin(1, {1, 2}));
  cut();
  take_asked();
  take_ready();
  say(msg::await_step{2, {}});
  EXPECT_THAT(take_asked(), ElementsAre("fence 1 2"));
  EXPECT_THAT(take_ready(), IsEmpty());
  end(1);
  end(2);
  say(msg::fence_made{2, {fence::kind_t::event, 5}});
  ASSERT_EQ(rank.ready.size(), 1u);
  EXPECT_EQ(rank.ready[0].step, 2u);
  EXPECT_EQ(rank.ready[0].wait_for.handle, 5u);
  say(msg::end_step{2, {}});
  compute(3);
  EXPECT_THAT(take_asked(), IsEmpty()) << "nothing is in flight";
}

TEST_F(RemoteWorker, S6AStepWithoutAPlanBeginsBehindTheEndOfTheOneBefore) {
  spawn();
  register_kv();
  say(msg::await_step{1, {}});
  say(msg::await_step{2, {}});
  EXPECT_THAT(take_ready(), ElementsAre(1));
  say(msg::end_step{1, {}});
  EXPECT_THAT(take_ready(), ElementsAre(2));
}

TEST_F(RemoteWorker, AStepThatIsAwaitedTwiceBeginsOnce) {
  spawn();
  register_kv();
  say(msg::await_step{1, {}});
  say(msg::await_step{1, {}});
  say(msg::await_step{2, {}});
  say(msg::await_step{2, {}});
  say(msg::end_step{1, {}});
  say(msg::end_step{2, {}});
  EXPECT_THAT(take_ready(), ElementsAre(1, 2));
}

// -- loss ---------------------------------------------------------------------

TEST_F(RemoteWorker, RankHearsOncePerLoss) {
  start();
  EXPECT_THAT(rank.failures, IsEmpty());
  cut();
  ASSERT_EQ(rank.failures.size(), 1u);
  EXPECT_EQ(rank.failures[0].rank, 3u);
  EXPECT_EQ(rank.failures[0].reason.code, ec::scheduler_unreachable);
  EXPECT_THAT(rank.failures[0].reason.text, HasSubstr("without the cache"));
  compute(1);
  EXPECT_EQ(rank.failures.size(), 1u);
  EXPECT_TRUE(is_alive(uut));
  connect();
  cut();
  EXPECT_EQ(rank.failures.size(), 2u);
}

TEST_F(RemoteWorker, NothingStartsAfterTheLoss) {
  start();
  run_step(begin(1));
  plan(stores(1, {1}));
  plan(begin(2));
  plan(stores(2, {2}));
  plan(begin(3, {3}, {4}));
  plan(stores(4, {5}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
  cut();
  say(msg::end_step{2, {}});
  world.advance(1s);
  say(msg::await_step{3, {}});
  EXPECT_THAT(take_asked(), ElementsAre("fence 1"));
  end(1);
  say(msg::fence_made{3, {}});
  say(msg::end_step{3, {}});
  compute(4);
  EXPECT_THAT(take_asked(), IsEmpty());
  EXPECT_EQ(state().failed_jobs, 4u);
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(RemoteWorker, StoresThatWaitFailWithTheConnection) {
  start();
  run_step(begin(1));
  plan(stores(1, {1}));
  cut();
  world.advance(1s);
  compute(2);
  EXPECT_THAT(take_asked(), IsEmpty());
  EXPECT_EQ(state().failed_jobs, 1u);
}

TEST_F(RemoteWorker, StepThatWasAwaitedWhenTheConnectionWentBegins) {
  start();
  run_step(begin(1, {1}));
  say(msg::await_step{2, {}});
  take_asked();
  EXPECT_THAT(take_ready(), ElementsAre(1)) << "its plan is to come";
  cut();
  EXPECT_THAT(take_asked(), ElementsAre("fence 1"));
  end(1);
  say(msg::fence_made{2, {}});
  EXPECT_THAT(take_ready(), ElementsAre(2));
}

TEST_F(RemoteWorker, StepWhosePlanWasHeldBeginsWithoutIt) {
  start();
  run_step(begin(1));
  say(msg::await_step{2, {}});
  plan(begin(2));
  plan(begin(3, {1}));
  say(msg::await_step{3, {}});
  EXPECT_THAT(take_ready(), ElementsAre(1, 2));
  cut();
  EXPECT_THAT(take_ready(), IsEmpty());
  say(msg::end_step{2, {}});
  EXPECT_THAT(take_ready(), ElementsAre(3));
  EXPECT_THAT(take_asked(), IsEmpty());
}

TEST_F(RemoteWorker, FenceThatWasAskedForStillComes) {
  start();
  run_step(begin(1, {1}));
  plan(begin(2, {2}, {}, {1}));
  take_asked();
  take_ready();
  cut();
  EXPECT_THAT(take_ready(), IsEmpty());
  EXPECT_THAT(take_asked(), IsEmpty()) << "one fence per step";
  end(1);
  say(msg::fence_made{2, {}});
  EXPECT_THAT(take_ready(), ElementsAre(2));
  say(msg::end_step{2, {}});
  say(msg::await_step{3, {}});
  EXPECT_THAT(take_asked(), ElementsAre("fence 2"));
}

TEST_F(RemoteWorker, ConnectionMayGoBetweenAPlanAndItsStores) {
  start();
  run_step(begin(1));
  cut();
  compute(2);
  connect();
  run_step(begin(3, {4}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 4"));
  EXPECT_THAT(take_ready(), ElementsAre(1, 2, 3));
}

TEST_F(RemoteWorker, NothingOfTheLossIsReportedLateOrInTime) {
  start();
  run_step(begin(1, {1, 2}));
  cut();
  for (auto i = 0; i < 12; ++i)
    world.advance(100ms);
  EXPECT_THAT(take_asked(), ElementsAre("submit 1 2"))
    << "nobody asks the device what is late";
  EXPECT_FALSE(world.timers_pending());
  end(1);
  connect();
  EXPECT_THAT(take_reports(), IsEmpty());
}

TEST_F(RemoteWorker, QuitsWithItsDevice) {
  start();
  run_step(begin(1, {1}));
  cut();
  say(msg::await_step{2, {}});
  take_ready();
  world.kill(target);
  EXPECT_THAT(take_ready(), ElementsAre(2)) << "no copy runs any more";
  EXPECT_EQ(rank.failures.back().reason.code, ec::device_failure);
  EXPECT_FALSE(is_alive(uut));
}

TEST_F(RemoteWorker, StepsGoOnIfTheRankHadNotComeToItsPlans) {
  told.first_planned = 5;
  start();
  compute(3);
  cut();
  compute(4);
  compute(5);
  EXPECT_THAT(take_ready(), ElementsAre(3, 4, 5));
}

// -- the same scheduler again -------------------------------------------------

TEST_F(RemoteWorker, S9CopiesThatRanWhenTheConnectionWentAreDrained) {
  start();
  run_step(begin(1, {1, 2, 3}));
  cut();
  end(1);
  connect();
  ASSERT_EQ(told.ready.size(), 2u) << "they may run on meanwhile";
  EXPECT_EQ(told.ready[1].incarnation, 7u);
  plan(msg::report_again{{}, {1, 2, 3}});
  EXPECT_THAT(take_reports(), ElementsAre("1 drained"));
  end(2);
  say(msg::copies_done{{{3, false, 1, "broken"}}});
  EXPECT_THAT(take_reports(), ElementsAre("2 drained", "3 drained"));
}

TEST_F(RemoteWorker, S9JobsThatFailedWithTheConnectionAreDrained) {
  start();
  run_step(begin(1));
  plan(stores(1, {1}));
  plan(begin(2, {2}));
  plan(begin(3, {3}));
  cut();
  connect();
  plan(msg::report_again{{}, {1, 3}});
  EXPECT_THAT(take_reports(), ElementsAre("3 drained"))
    << "1 has been handed over and has not ended";
}

TEST_F(RemoteWorker, S9ReportsOfTheLostConnectionDoNotCome) {
  start();
  run_step(begin(1));
  plan(stores(1, {1}));
  lines.back().cut(side::rank);
  world.run();
  lines.back().flow();
  EXPECT_THAT(take_reports(), IsEmpty());
  connect();
  EXPECT_THAT(take_reports(), IsEmpty());
}

TEST_F(RemoteWorker, S12AnyStepMayComeFirstOnAConnection) {
  start();
  run_step(begin(5));
  cut();
  compute(6);
  compute(7);
  connect();
  run_step(begin(8, {3}));
  run_step(begin(9, {4}));
  EXPECT_THAT(take_ready(), ElementsAre(5, 6, 7, 8, 9));
  EXPECT_THAT(take_asked(), ElementsAre("submit 3", "submit 4"));
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(RemoteWorker, S12PlansOfOneConnectionStillComeInOrder) {
  ear.expect();
  start();
  run_step(begin(5));
  plan(begin(7));
  EXPECT_THAT(ear.take(), ElementsAre(HasSubstr("S12 a plan came out of "
                                                "order")));
}

TEST_F(RemoteWorker, S6PlansRunAheadOfTheRank) {
  start();
  run_step(begin(1));
  plan(begin(2, {1}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1")) << "unasked";
}

TEST_F(RemoteWorker, StepsBeforeTheFirstPlanBeginAlone) {
  told.first_planned = 6;
  start();
  say(msg::await_step{4, {}});
  plan(begin(6, {1}));
  plan(begin(7, {2}));
  say(msg::end_step{4, {}});
  EXPECT_THAT(take_asked(), IsEmpty()) << "step 5 is still to come";
  compute(5);
  EXPECT_THAT(take_ready(), ElementsAre(4, 5, 6));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
  say(msg::end_step{6, {}});
  EXPECT_THAT(take_asked(), ElementsAre("submit 2"));
  EXPECT_THAT(take_ready(), ElementsAre(7));
}

TEST_F(RemoteWorker, StepsThatTheRankSkipsHaveNoPlans) {
  told.first_planned = 6;
  start();
  plan(begin(6, {1}));
  plan(begin(7, {2}));
  EXPECT_THAT(take_asked(), IsEmpty()) << "step 5 may be still to come";
  say(msg::await_step{7, {}});
  EXPECT_THAT(take_reports(), ElementsAre("1 failed"));
  EXPECT_THAT(take_asked(), ElementsAre("submit 2"));
  EXPECT_THAT(take_ready(), ElementsAre(7));
}

TEST_F(RemoteWorker, S6StoresOfAStepThatTheRankSkippedFail) {
  told.first_planned = 6;
  start();
  plan(begin(6));
  say(msg::await_step{7, {}});
  plan(stores(6, {2}));
  EXPECT_THAT(take_reports(), ElementsAre("2 failed"));
  plan(begin(7));
  world.advance(1s);
  EXPECT_THAT(take_asked(), IsEmpty());
  EXPECT_THAT(take_ready(), ElementsAre(7));
}

TEST_F(RemoteWorker, S4PlanOfAStepThatBeganWithoutItFails) {
  // The engine asks this rank before its scheduler.
  spawn();
  register_kv();
  say(msg::await_step{4, {}});
  told.first_planned = 4;
  connect();
  take_asked();
  plan(begin(4, {1}, {2}, {2}));
  EXPECT_THAT(take_asked(), IsEmpty());
  EXPECT_THAT(take_reports(), ElementsAre("2 failed", "1 failed"));
  plan(stores(4, {3}));
  EXPECT_THAT(take_reports(), IsEmpty());
  say(msg::end_step{4, {}});
  plan(begin(5, {4}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 3", "submit 4"))
    << "what it computed can be stored";
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(RemoteWorker, S4PlanOfAStepThatTheRankHasLeftBehindFails) {
  spawn();
  register_kv();
  compute(4);
  say(msg::await_step{5, {}});
  told.first_planned = 4;
  connect();
  take_asked();
  plan(begin(4, {1}));
  plan(stores(4, {2}));
  EXPECT_THAT(take_asked(), IsEmpty());
  say(msg::await_step{6, {}});
  plan(begin(5, {3}));
  plan(stores(5, {4}));
  EXPECT_THAT(take_reports(), ElementsAre("1 failed", "2 failed", "3 failed"));
  say(msg::end_step{5, {}});
  plan(begin(6, {5}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 4", "submit 5"));
  EXPECT_THAT(take_ready(), ElementsAre(4, 5, 6));
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(RemoteWorker, WaitsForAPlanThatComesBehindThoseItDropped) {
  spawn();
  register_kv();
  compute(4);
  compute(5);
  say(msg::await_step{6, {}});
  told.first_planned = 4;
  connect();
  say(msg::await_step{7, {}});
  take_asked();
  take_ready();
  plan(begin(4, {1}));
  say(msg::end_step{6, {}});
  EXPECT_THAT(take_reports(), ElementsAre("1 failed"));
  EXPECT_THAT(take_ready(), IsEmpty()) << "its plan will come";
  plan(begin(5));
  plan(begin(6));
  plan(begin(7, {2}));
  EXPECT_THAT(take_ready(), ElementsAre(7));
  EXPECT_THAT(take_asked(), ElementsAre("submit 2"));
}

TEST_F(RemoteWorker, S5FlushWaitsForCopiesOfAnEarlierConnection) {
  start();
  run_step(begin(1, {1}));
  cut();
  connect();
  take_asked();
  plan(begin(2, {2}, {}, {1}));
  say(msg::await_step{2, {}});
  EXPECT_THAT(take_asked(), ElementsAre("fence 1", "submit 2 after 1"));
}

TEST_F(RemoteWorker, S4FlushMayNameJobsThatNeverCameHere) {
  start();
  run_step(begin(1, {1}));
  cut();
  connect();
  take_asked();
  plan(begin(2, {}, {}, {1, 5}));
  EXPECT_THAT(take_asked(), ElementsAre("fence 1"))
    << "1 still runs, 5 was planned while this rank was away";
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(RemoteWorker, S4NoJobIsTakenWhileItRuns) {
  ear.expect();
  start();
  run_step(begin(1, {1}));
  cut();
  connect();
  take_asked();
  run_step(begin(2, {1}));
  EXPECT_THAT(take_asked(), IsEmpty());
  EXPECT_EQ(state().order.total(), 1u);
}

// -- messages of connections that are over ------------------------------------

TEST_F(RemoteWorker, IgnoresAndCountsMessagesOfAConnectionThatIsOver) {
  start();
  run_step(begin(1));
  const auto old_boss = far_boss;
  cut();
  world.send_as(old_boss, uut, begin(2, {1}));
  world.send_as(old_boss, uut, stores(1, {2}));
  flow();
  connect();
  world.send_as(old_boss, uut, begin(2, {3}));
  world.send_as(old_boss, uut, msg::report_again{{9}, {}});
  world.send_as(old_boss, uut, msg::pause{1});
  world.send_as(old_boss, uut, msg::tick{1});
  world.send(uut, begin(2, {4}));
  flow();
  EXPECT_THAT(take_asked(), IsEmpty());
  EXPECT_THAT(take_reports(), IsEmpty());
  say(msg::get_rank_stats{});
  ASSERT_EQ(rank.stats.size(), 1u);
  EXPECT_EQ(rank.stats[0].late_messages, 7u);
  EXPECT_EQ(rank.stats[0].order_errors, 0u);
  run_step(begin(2, {5}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 5"));
}

TEST_F(RemoteWorker, IgnoresPlansBeforeItSaidThatItIsReady) {
  spawn();
  connect();
  plan(begin(1, {1}));
  EXPECT_EQ(state().late_messages, 1u);
  EXPECT_THAT(take_reports(), IsEmpty());
}

TEST_F(RemoteWorker, EndOfAnEarlierConnectionMayBeHeardOfLate) {
  start();
  connect();
  EXPECT_EQ(told.ready.size(), 2u) << "the scheduler noticed the loss first";
  lines.front().cut();
  flow();
  EXPECT_THAT(rank.failures, IsEmpty());
  run_step(begin(1, {1}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
}

TEST_F(RemoteWorker, EndOfAnEarlierConnectionMayBeUnderWayMeanwhile) {
  start();
  auto& line = lines.emplace_back(world);
  far_boss = line.add(boss, side::engine);
  far_worker = line.add(uut, side::rank);
  world.send(
    uut, msg::attach{7, 1, caf::actor_cast<caf::strong_actor_ptr>(far_boss)});
  lines.front().cut(side::rank);
  flow();
  EXPECT_THAT(rank.failures, IsEmpty());
  EXPECT_EQ(told.ready.size(), 2u);
  run_step(begin(1, {1}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
}

TEST_F(RemoteWorker, NextConnectionEndsTheOneBefore) {
  start();
  run_step(begin(1, {1}));
  plan(stores(1, {2}));
  plan(begin(2));
  plan(stores(2, {3}));
  say(msg::await_step{2, {}});
  say(msg::end_step{2, {}});
  take_asked();
  told.first_planned = 4;
  connect();
  EXPECT_THAT(take_reports(), IsEmpty()) << "nothing of before is said unasked";
  plan(msg::report_again{{}, {1, 2, 3}});
  EXPECT_THAT(take_reports(), ElementsAre("3 drained"));
  end(1);
  end(2);
  EXPECT_THAT(take_reports(), ElementsAre("1 drained", "2 drained"));
  compute(3);
  EXPECT_THAT(take_asked(), IsEmpty()) << "what waited has failed";
}

// -- another scheduler --------------------------------------------------------

TEST_F(RemoteWorker, S9AnotherSchedulerWaitsForTheCopiesOfTheOneBefore) {
  start();
  run_step(begin(40, {1, 2}));
  cut();
  take_asked();
  take_ready();
  connect(1, 2);
  EXPECT_EQ(told.ready.size(), 1u) << "its jobs have the same ids";
  say(msg::await_step{1, {}});
  EXPECT_THAT(take_asked(), ElementsAre("fence 1 2"));
  end(1);
  EXPECT_EQ(told.ready.size(), 1u);
  end(2);
  say(msg::fence_made{41, {}});
  EXPECT_THAT(take_ready(), ElementsAre(1));
  ASSERT_EQ(told.ready.size(), 2u);
  EXPECT_EQ(told.ready[1].incarnation, 1u);
  EXPECT_THAT(take_reports(), IsEmpty());
  say(msg::end_step{1, {}});
  run_step(begin(2, {1}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
  end(1);
  EXPECT_THAT(take_reports(), ElementsAre("1 done"));
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(RemoteWorker, AnotherSchedulerIsThereAtOnceIfNothingRuns) {
  start();
  run_step(begin(40, {1}));
  end(1);
  cut();
  connect(1, 2);
  EXPECT_EQ(told.ready.size(), 2u);
}

TEST_F(RemoteWorker, S9AnotherSchedulerHearsNothingOfEarlierJobs) {
  start();
  run_step(begin(1, {1}));
  end(1);
  take_reports();
  cut();
  connect(7, 2);
  plan(msg::report_again{{1}, {}});
  EXPECT_THAT(take_reports(), ElementsAre("1 failed")) << "not done";
}

TEST_F(RemoteWorker, S9AnotherLifeOfTheRankWaitsForTheCopiesAsWell) {
  start();
  run_step(begin(1, {1}));
  cut();
  connect(8, 1);
  EXPECT_EQ(told.ready.size(), 1u) << "to the scheduler they are over then";
  end(1);
  EXPECT_EQ(told.ready.size(), 2u);
  EXPECT_THAT(take_reports(), IsEmpty());
}

TEST_F(RemoteWorker, CopiesOfBeforeAreWaitedForOverMoreThanOneLoss) {
  start();
  run_step(begin(1, {1}));
  cut();
  connect(1, 2);
  cut();
  connect(1, 2);
  EXPECT_EQ(told.ready.size(), 1u);
  end(1);
  EXPECT_EQ(told.ready.size(), 2u);
}

TEST_F(RemoteWorker, S3AnotherSchedulersStepIsNotTheOneThatBeganAlone) {
  start();
  cut();
  compute(1);
  connect(1, 2);
  plan(begin(1));
  plan(stores(1, {1}));
  world.advance(1s);
  EXPECT_THAT(take_asked(), IsEmpty()) << "its step 1 is yet to be computed";
  compute(1);
  world.advance(1s);
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
}

TEST_F(RemoteWorker, S3AnotherSchedulersStoresAreNotThoseOfBefore) {
  start();
  plan(begin(1));
  say(msg::await_step{1, {}});
  plan(begin(2));
  plan(begin(3));
  plan(begin(4));
  plan(stores(4, {1}));
  cut();
  say(msg::end_step{1, {}});
  connect(7, 2);
  run_step(begin(1));
  plan(stores(1, {1}));
  plan(begin(2));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(RemoteWorker, S4AnotherSchedulersJobsWereNotSkipped) {
  start();
  plan(begin(1));
  say(msg::await_step{1, {}});
  plan(begin(2, {9}));
  cut();
  say(msg::end_step{1, {}});
  connect(7, 2);
  run_step(begin(1, {1}));
  take_asked();
  plan(begin(2, {}, {}, {1}));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(std::get<msg::make_fence>(asked[0]).skipped, std::nullopt);
}

// What the engine before has said was under way when its process ended, and
// comes when the next scheduler has begun.
TEST_F(RemoteWorker, StepsOfAnEngineThatIsGoneKeepNobodyWaiting) {
  start();
  cut();
  told.first_planned = 3;
  connect(7, 2);
  plan(begin(3, {1}));
  say(msg::await_step{500, {}});
  compute(2);
  compute(3);
  run_step(begin(4, {2}));
  EXPECT_THAT(take_ready(), ElementsAre(2, 3, 4));
  EXPECT_THAT(take_asked(), ElementsAre("submit 2"));
  EXPECT_THAT(take_reports(), ElementsAre("1 failed"));
  EXPECT_EQ(state().awaited.size(), 0u);
}

// Its first step may have any number, also one that the engine before has had.
TEST_F(RemoteWorker, StepsOfAnEngineThatIsGoneAreInNobodysWay) {
  start();
  run_step(begin(40, {1}));
  cut();
  take_ready();
  connect(1, 2);
  say(msg::await_step{41, {}});
  end(1);
  EXPECT_EQ(told.ready.size(), 2u);
  say(msg::fence_made{41, {}});
  say(msg::end_step{41, {}});
  say(msg::await_step{1, {}});
  plan(begin(1, {1}));
  say(msg::end_step{1, {}});
  say(msg::await_step{2, {}});
  plan(begin(2, {2}));
  EXPECT_THAT(take_ready(), ElementsAre(41, 1, 2));
}

TEST_F(RemoteWorker, StepThatTheSchedulerDoesNotKnowBeginsAlone) {
  start();
  say(msg::await_step{149, {}});
  EXPECT_THAT(take_ready(), IsEmpty());
  plan(begin(150, {1}));
  say(msg::end_step{149, {}});
  say(msg::await_step{150, {}});
  EXPECT_THAT(take_ready(), ElementsAre(149, 150));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
}

// -- plans that the engine carries --------------------------------------------

class RemoteWorkerByEngine : public RemoteWorker {
protected:
  RemoteWorkerByEngine() {
    config.delivery = plan_delivery::by_engine;
  }

  void carry(const msg::begin_step& first, const msg::stores& second,
             std::uint64_t epoch = 1) {
    say(msg::await_step{first.step, encode_plan(first, second, epoch)});
  }
};

TEST_F(RemoteWorkerByEngine, TakesPlansThatTheEngineCarries) {
  start();
  carry(begin(4, {1}), stores(4, {2}));
  say(msg::end_step{4, {}});
  carry(begin(5), stores(5, {}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 1", "submit 2"));
  EXPECT_THAT(take_ready(), ElementsAre(4, 5));
}

TEST_F(RemoteWorkerByEngine, NoJobOfAPlanStartsWithoutAScheduler) {
  start();
  cut();
  carry(begin(4, {1}), stores(4, {2}));
  say(msg::end_step{4, {}});
  say(msg::await_step{5, {}});
  EXPECT_THAT(take_asked(), IsEmpty());
  EXPECT_THAT(take_ready(), ElementsAre(4, 5));
}

TEST_F(RemoteWorkerByEngine, StepWhosePlanWasHeldBeginsWithoutIt) {
  start();
  carry(begin(4), stores(4, {}));
  carry(begin(5, {1}), stores(5, {}));
  cut();
  say(msg::end_step{4, {}});
  EXPECT_THAT(take_ready(), ElementsAre(4, 5));
  EXPECT_THAT(take_asked(), IsEmpty());
}

TEST_F(RemoteWorkerByEngine, S9NothingStartsThatWasSaidToBeOver) {
  start();
  cut();
  told.first_planned = 5;
  connect();
  // Of a plan that was made before the loss and is still under way.
  plan(msg::report_again{{}, {1, 2}});
  EXPECT_THAT(take_reports(), ElementsAre("1 drained", "2 drained"));
  carry(begin(4, {1}), stores(4, {2}));
  say(msg::end_step{4, {}});
  carry(begin(5, {3}), stores(5, {}));
  EXPECT_THAT(take_asked(), ElementsAre("submit 3"));
  EXPECT_THAT(take_ready(), ElementsAre(4, 5));
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(RemoteWorkerByEngine, NoJobOfAPlanOfAnotherSchedulerStarts) {
  start();
  carry(begin(4, {1}), stores(4, {2}));
  cut();
  say(msg::end_step{4, {}});
  end(1);
  connect(7, 2);
  take_asked();
  carry(begin(5, {3}), stores(5, {4}));
  EXPECT_EQ(state().late_messages, 1u);
  EXPECT_THAT(rank.failures.back().reason.text, HasSubstr("scheduler that is"));
  carry(begin(1, {1}), stores(1, {}), 2);
  EXPECT_THAT(take_asked(), ElementsAre("submit 1"));
  EXPECT_THAT(take_ready(), ElementsAre(4, 1));
}

TEST_F(RemoteWorkerByEngine, PlanIsLookedAtWhenItIsKnownWhetherItCounts) {
  told.keeps_waiting = true;
  start();
  carry(begin(4, {1}), stores(4, {2}));
  carry(begin(5, {3}), stores(5, {}));
  EXPECT_THAT(take_ready(), IsEmpty());
  plan(msg::seat{1, {}, 5});
  say(msg::end_step{4, {}});
  EXPECT_THAT(take_asked(), ElementsAre("submit 3"));
  EXPECT_THAT(take_ready(), ElementsAre(4, 5));
}

// -- simulated time -----------------------------------------------------------

class RemoteWorkerInSimulatedTime : public RemoteWorker {
protected:
  RemoteWorkerInSimulatedTime() {
    config.virtual_time = true;
    config.job_deadline = 1'000ns;
    config.idle_delay = 50ns;
  }
};

TEST_F(RemoteWorkerInSimulatedTime, TicksTravel) {
  start();
  plan(msg::tick{10});
  EXPECT_THAT(take_asked(), ElementsAre("tick 10"));
  say(msg::device_ticked{300});
  ASSERT_EQ(told.ticks.size(), 1u);
  EXPECT_EQ(told.ticks[0].incarnation, 7u);
  EXPECT_EQ(told.ticks[0].next_due, 300);
}

TEST_F(RemoteWorkerInSimulatedTime, CopiesEndWithoutAnybodyWhoMovesTime) {
  start();
  run_step(begin(1, {1, 2}));
  say(msg::await_step{2, {}});
  take_asked();
  cut();
  EXPECT_THAT(take_asked(), ElementsAre("fence 1 2", "tick 0"));
  say(msg::fence_made{2, {fence::kind_t::event, 700}});
  say(msg::device_ticked{400});
  EXPECT_THAT(take_asked(), ElementsAre("tick 400"));
  end(1);
  say(msg::device_ticked{700});
  EXPECT_THAT(take_asked(), ElementsAre("tick 700"));
  end(2);
  say(msg::device_ticked{never});
  EXPECT_THAT(take_asked(), IsEmpty());
  EXPECT_THAT(told.ticks, IsEmpty());
  EXPECT_EQ(rank.ready.back().wait_for.handle, 700u);
  connect();
  plan(msg::report_again{{}, {1, 2}});
  EXPECT_THAT(take_reports(), ElementsAre("1 drained", "2 drained"));
  plan(msg::tick{500});
  EXPECT_THAT(take_asked(), ElementsAre("tick 700")) << "it never goes back";
  say(msg::device_ticked{never});
  EXPECT_EQ(told.ticks.size(), 1u);
}

TEST_F(RemoteWorkerInSimulatedTime, NothingMovesIfNothingRuns) {
  start();
  cut();
  EXPECT_THAT(take_asked(), IsEmpty());
  connect();
  plan(msg::tick{10});
  say(msg::device_ticked{never});
  EXPECT_EQ(told.ticks.size(), 1u);
}

TEST_F(RemoteWorkerInSimulatedTime, ACopyThatNeverEndsIsNotWaitedFor) {
  start();
  run_step(begin(1, {1}));
  cut();
  take_asked();
  say(msg::device_ticked{never});
  EXPECT_THAT(take_asked(), IsEmpty());
}

TEST_F(RemoteWorkerInSimulatedTime, TickOfALostConnectionIsNotAnswered) {
  start();
  plan(msg::tick{10});
  cut();
  connect();
  say(msg::device_ticked{never});
  EXPECT_THAT(told.ticks, IsEmpty());
  plan(msg::tick{20});
  say(msg::device_ticked{never});
  EXPECT_EQ(told.ticks.size(), 1u);
}

TEST_F(RemoteWorkerInSimulatedTime, NextTickMayComeBeforeTheLostOneIsOver) {
  start();
  plan(msg::tick{10});
  cut();
  connect();
  take_asked();
  plan(msg::tick{20});
  EXPECT_THAT(take_asked(), IsEmpty());
  say(msg::device_ticked{never});
  EXPECT_THAT(take_asked(), ElementsAre("tick 20"));
  say(msg::device_ticked{never});
  ASSERT_EQ(told.ticks.size(), 1u);
  EXPECT_EQ(state().order.total(), 0u);
}

TEST_F(RemoteWorkerInSimulatedTime, AnotherSchedulerIsNotWaitedForByCopies) {
  start();
  run_step(begin(1, {1}));
  cut();
  connect(1, 2);
  say(msg::device_ticked{400});
  EXPECT_THAT(take_asked(), ElementsAre("submit 1", "tick 0", "tick 400"));
  end(1);
  EXPECT_EQ(told.ready.size(), 2u);
  say(msg::device_ticked{never});
  EXPECT_THAT(told.ticks, IsEmpty());
}

TEST_F(RemoteWorkerInSimulatedTime, QuitsWithItsDevice) {
  start();
  plan(msg::tick{10});
  cut();
  world.kill(target);
  EXPECT_FALSE(is_alive(uut));
  EXPECT_THAT(told.ticks, IsEmpty());
}

} // namespace
} // namespace kvtide
