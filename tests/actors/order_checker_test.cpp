// SPDX-License-Identifier: Apache-2.0

/// @file
/// The order checker of the scheduler at work: each test lets one thing happen
/// that S1 to S13 exclude, by a message where a message can do it, else by
/// spoiling the scheduler's state as a bug would. With a real engine's calls:
/// scheduler_input_test.cpp.

#include "actors/scheduler.hpp"
#include "core/layout.hpp"
#include "tests/actors/short_forms.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/breach_ear.hpp"
#include "tests/support/listen.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

namespace kvtide::test {
namespace {

// -- neighbours that only listen ----------------------------------------------

struct fake_state {
  static inline const char* name = "fake";
};

struct questions {
  std::vector<msg::search> searches;
  std::vector<msg::prepare_stores> stores;
  std::vector<msg::get_pool_report> reports;
};

cache_manager_actor::behavior_type
fake_cache(cache_manager_actor::stateful_pointer<fake_state>, questions* log) {
  return listen<cache_manager_actor>(
    [=](const msg::search& x) { log->searches.push_back(x); },
    [=](const msg::prepare_stores& x) { log->stores.push_back(x); },
    [=](const msg::get_pool_report& x) { log->reports.push_back(x); });
}

struct answers {
  std::vector<step_plan> plans;
  std::vector<stats_answer> stats;
};

engine_actor::behavior_type
fake_engine(engine_actor::stateful_pointer<fake_state>, answers* log) {
  return listen<engine_actor>(
    [=](const step_plan& x) { log->plans.push_back(x); },
    [=](const stats_answer& x) { log->stats.push_back(x); });
}

// -- the scheduler ------------------------------------------------------------

/// Two ranks that only listen, and a cache manager that the test plays.
class OrderChecker : public actor_fixture {
protected:
  OrderChecker() {
    ear.expect();
    const auto opts = with_ranks(2);
    const auto shape
      = std::make_shared<const core::layout>(core::make_layout(opts).value());
    auto cfg = scheduler_config{shape, opts, ear.listener()};
    uut
      = world.spawn(scheduler, std::move(cfg), world.spawn(fake_cache, &asked),
                    world.spawn(fake_engine, &heard));
    for (rank_id rank = 0; rank < opts.ranks; ++rank)
      world.send_as(world.spawn(mute<gpu_worker_actor>), uut,
                    msg::worker_ready{rank, 1, 64});
    world.run();
  }

  template <class Message>
  void tell(Message message) {
    world.send(uut, std::move(message));
    world.run();
  }

  void add(request_id id) {
    tell(msg::add{++ticket, {id, 4, 4, false, false, false, no_cap, 0, 0, {}}});
    tell(msg::extend{++ticket, {id, 0, {prefix_hash{"a", 1}}, {}, {}}});
  }

  /// Plans a step in which a fresh request computes the tokens of one block.
  void run(request_id id, block_id block) {
    tell(msg::step{
      ++ticket,
      {++last_step, {{id, row_kind::fresh, {{block}}, 0, 4, 4}}, {}, {}}});
  }

  /// A step has planned its tail: it only moves its keys (R12).
  void finish(request_id id) {
    tell(msg::finish{++ticket, {id, finish_reason::abort, 4, 4}});
    tell(msg::step{++ticket, {++last_step, {}, {}, {}}});
    tell(msg::stores_prepared{state().turn, {}, {}});
  }

  /// The cache manager takes the one chunk that was offered last.
  void grant(slot_id slot) {
    auto out = core::store_grant{};
    out.accepted.push_back({0, slot});
    tell(msg::stores_prepared{
      state().turn, asked.stores.back().offers, {std::move(out)}});
  }

  /// Job 0 stores what R computed.
  void store(slot_id slot = 7) {
    add(R);
    run(R, 5);
    grant(slot);
  }

  void report(job_id job, rank_id rank, job_status status = job_status::done) {
    tell(msg::transfers_done{{{job, rank, 1, status, 0}}});
  }

  scheduler_state& state() {
    return state_of<scheduler_state>(uut);
  }

  breach_ear ear;
  questions asked;
  answers heard;
  scheduler_actor uut;
  ticket_id ticket = 0;
  step_id last_step = 0;
};

TEST_F(OrderChecker, S1CallsComeInTheOrderOfTheirTickets) {
  tell(msg::reset{5});
  tell(msg::get_stats{4});
  EXPECT_THAT(ear.take(), ElementsAre("S1 tickets do not ascend: a call with "
                                      "ticket 4 came after one with 5"));
}

TEST_F(OrderChecker, S1AnswersLeaveInTheOrderOfTheirTickets) {
  tell(msg::reset{5});
  (void)state().answers.follows(9);
  tell(msg::reset{6});
  EXPECT_THAT(ear.take(), ElementsAre("S1 tickets do not ascend: an answer "
                                      "with ticket 6 came after one with 9"));
}

TEST_F(OrderChecker, S1AnAnswerOfAnotherTurnIsIgnored) {
  tell(msg::get_stats{++ticket});
  ASSERT_EQ(asked.reports.size(), 1u);
  auto old = msg::pool_report{};
  old.turn = asked.reports[0].turn - 1;
  tell(old);
  EXPECT_THAT(ear.take(),
              ElementsAre(StartsWith("S1 an answer came without a question: "
                                     "pool_report of turn ")));
  EXPECT_THAT(heard.stats, IsEmpty());
  old.turn += 1;
  tell(old);
  ASSERT_EQ(heard.stats.size(), 1u);
  EXPECT_EQ(heard.stats[0].values.order_errors, 1u);
  EXPECT_EQ(heard.stats[0].values.order_errors_by_rule[1], 1u);
  EXPECT_THAT(ear.take(), IsEmpty());
}

TEST_F(OrderChecker, S1AnyAnswerThatNobodyAskedForIsIgnored) {
  const auto expect_ignored = [this](auto answer, const std::string& name) {
    if constexpr (requires { answer.turn; })
      answer.turn = state().turn;
    tell(std::move(answer));
    EXPECT_THAT(
      ear.take(),
      ElementsAre(StartsWith("S1 an answer came without a question: " + name)));
  };
  const auto expect_all_ignored = [&] {
    expect_ignored(msg::store_offer{}, "store_offer");
    expect_ignored(msg::load_offer{}, "load_offer");
    expect_ignored(msg::search_result{}, "search_result");
    expect_ignored(msg::stores_prepared{}, "stores_prepared");
    expect_ignored(msg::load_prepared{}, "load_prepared");
    expect_ignored(msg::rolled_back{}, "rolled_back");
    expect_ignored(msg::cache_events{}, "cache_events");
    expect_ignored(msg::key_states{}, "key_states");
  };
  expect_all_ignored();
  expect_ignored(msg::pool_report{}, "pool_report");
  // Nor may they be taken for the answer that an item waits for.
  tell(msg::get_stats{++ticket});
  expect_all_ignored();
  tell(msg::pool_report{state().turn, {}, 0, 0, 0, 0});
  EXPECT_THAT(ear.take(), IsEmpty());
  ASSERT_EQ(heard.stats.size(), 1u);
  EXPECT_EQ(heard.stats[0].values.order_errors_by_rule[1], 17u);
}

// Not S1 itself, but what it costs: compute waits for `begin_step`.
TEST_F(OrderChecker, ABeginStepWaitsOnlyForATailThatMayBeStored) {
  store();
  tell(msg::finish{++ticket, {R, finish_reason::abort, 4, 4}});
  tell(msg::step{++ticket, {++last_step, {}, {}, {}}});
  ASSERT_TRUE(std::holds_alternative<step_phase>(state().phase))
    << "its keys are moved (R12)";
  EXPECT_FALSE(std::get<step_phase>(state().phase).begin_late);
  tell(msg::stores_prepared{state().turn, {}, {}});
}

TEST_F(OrderChecker, S13AnAnsweredShutdownWaitsForNothing) {
  store();
  tell(msg::shutdown{++ticket, 50'000'000});
  EXPECT_LT(state().own_due(), state().reports_due);
  world.advance(std::chrono::milliseconds{50});
  EXPECT_EQ(state().own_due(), state().reports_due);
}

TEST_F(OrderChecker, S1ALongQueueNeedsNoStack) {
  constexpr auto many = step_id{100'000};
  tell(msg::get_stats{++ticket});
  while (last_step < many)
    world.send(uut, msg::step{++ticket, {++last_step, {}, {}, {}}});
  world.run();
  tell(msg::pool_report{state().turn, {}, 0, 0, 0, 0});
  EXPECT_EQ(state().last_step, many);
}

TEST_F(OrderChecker, S1ARequestAnswersAStepOnce) {
  add(R);
  run(R, 5);
  ASSERT_EQ(asked.stores.size(), 1u);
  auto again = msg::store_offer{};
  again.turn = state().turn;
  again.request = R;
  tell(again);
  again.request = Q;
  tell(again);
  EXPECT_EQ(ear.take().size(), 2u);
  EXPECT_EQ(asked.stores.size(), 1u);
}

TEST_F(OrderChecker, S1ThePoolAnswersWhatItWasAsked) {
  add(R);
  run(R, 5);
  tell(msg::stores_prepared{state().turn, {}, {}});
  tell(msg::search_result{state().turn, {}});
  tell(msg::load_prepared{state().turn, {}});
  tell(msg::rolled_back{state().turn, {}});
  tell(msg::cache_events{state().turn, {}});
  tell(msg::key_states{});
  EXPECT_EQ(ear.take().size(), 6u);
  EXPECT_THAT(heard.plans, IsEmpty());
  grant(3);
  EXPECT_EQ(heard.plans.size(), 1u);
}

TEST_F(OrderChecker, S2ARequestIsNotDroppedWithAJobInFlight) {
  store();
  state().find(R)->jobs.clear();
  finish(R);
  EXPECT_THAT(ear.take(), ElementsAre(StartsWith("S2 a request was dropped "
                                                 "before its last job")));
}

TEST_F(OrderChecker, S2ARequestThatIsOverIsDropped) {
  store();
  finish(R);
  state().find(R)->jobs.push_back(99);
  report(0, 0);
  report(0, 1);
  EXPECT_THAT(ear.take(), ElementsAre(StartsWith("S2 requests that are over "
                                                 "were not dropped")));
}

TEST_F(OrderChecker, S8ASlotIsHandedOutOnce) {
  store(7);
  add(Q);
  run(Q, 6);
  grant(7);
  EXPECT_THAT(ear.take(),
              ElementsAre("S8 a slot was handed out that a copy may touch: "
                          "slot 7 for job 1, but job 0 has not ended"));
}

TEST_F(OrderChecker, S8ALateCopyKeepsItsSlot) {
  store(7);
  report(0, 0, job_status::late);
  report(0, 1);
  tell(msg::rolled_back{state().turn, {}});
  add(Q);
  run(Q, 6);
  grant(7);
  EXPECT_EQ(ear.take().size(), 1u);
}

TEST_F(OrderChecker, S9ARankReportsAJobOnce) {
  store();
  report(0, 0);
  report(0, 0);
  report(5, 0);
  EXPECT_THAT(ear.take(),
              ElementsAre("S9 a report came twice, or for an unknown job: job "
                          "0, rank 0, incarnation 1",
                          "S9 a report came twice, or for an unknown job: job "
                          "5, rank 0, incarnation 1"));
}

TEST_F(OrderChecker, S9NothingIsPublishedThatARankLacks) {
  store();
  state().jobs.find(0)->silent = 1;
  report(0, 0);
  EXPECT_THAT(ear.take(),
              ElementsAre("S9 a job was published that some rank did not do: "
                          "job 0, done by 1 of 2 ranks"));
}

TEST_F(OrderChecker, S11AJobFromBeforeAResetHasNoEffect) {
  store();
  tell(msg::reset{++ticket});
  state().jobs.find(0)->stale = false;
  report(0, 0);
  report(0, 1);
  EXPECT_THAT(ear.take(), ElementsAre(StartsWith("S11 a job from before a "
                                                 "reset took effect: job 0")));
}

TEST_F(OrderChecker, S12AReportBelongsToTheRanksPresentLife) {
  store();
  tell(msg::transfers_done{{{0, 0, 2, job_status::done, 0}}});
  EXPECT_THAT(ear.take(), ElementsAre("S12 a report of another life of a rank "
                                      "came: job 0, rank 0, incarnation 2"));
}

TEST_F(OrderChecker, S12AReportOfAnEarlierLifeIsNoError) {
  store();
  world.send_as(world.spawn(mute<gpu_worker_actor>), uut,
                msg::worker_ready{1, 2, 64});
  world.run();
  report(0, 1); // Was on its way when the rank died and came back.
  EXPECT_THAT(ear.take(), IsEmpty());
  EXPECT_THAT(state().jobs.find(0)->ok(), false) << "it had failed with it";
}

TEST_F(OrderChecker, S9AnAnswerToAReminderMayRepeatAReport) {
  store();
  report(0, 0);
  for (auto i = 0; i < 2; ++i)
    tell(msg::transfers_done{{{0, 0, 1, job_status::done, 0, true}}});
  EXPECT_THAT(ear.take(), IsEmpty());
  report(0, 0);
  EXPECT_EQ(ear.take().size(), 1u);
}

TEST_F(OrderChecker, S12NoRankIsAskedForALoadOfWhichItWasNotTold) {
  auto reminders = std::vector<msg::report_again>{};
  const auto listener = [&reminders](gpu_worker_actor::pointer) {
    return listen<gpu_worker_actor>(
      [&reminders](const msg::report_again& x) { reminders.push_back(x); });
  };
  for (rank_id rank : {0, 1})
    world.send_as(world.spawn(listener), uut, msg::worker_ready{rank, 2, 64});
  world.run();
  add(R);
  tell(msg::finish{++ticket, {R, finish_reason::stop, 4, 4}});
  add(Q);
  tell(msg::lookup{++ticket, {{Q, 0, 5}}});
  auto hit = core::search_answer{};
  hit.tokens = hit.end_tokens = 4;
  tell(msg::search_result{state().turn, {hit}});
  tell(msg::allocate{++ticket, {Q, 4, {{5, 6}}, {{0, 0}}}});
  auto slots = core::load_grant{};
  slots.slots = {3};
  tell(msg::load_prepared{state().turn, slots});
  ASSERT_EQ(state().jobs.running(), 1u);
  // The tail of R is asked for, so `begin_step` with the load has to wait.
  tell(msg::step{++ticket, {++last_step, {}, {}, {}}});
  ASSERT_TRUE(std::holds_alternative<step_phase>(state().phase));
  world.advance(std::chrono::seconds{50});
  EXPECT_THAT(reminders, IsEmpty());
  tell(msg::stores_prepared{state().turn, {}, {}});
  world.advance(std::chrono::seconds{50});
  EXPECT_EQ(reminders.size(), 2u) << "one for each rank";
}

TEST_F(OrderChecker, S13AFinishHasATimer) {
  add(R);
  tell(msg::finish{++ticket, {R, finish_reason::stop, 4, 0}});
  EXPECT_THAT(ear.take(), IsEmpty());
  state().wake_up = {};
  tell(msg::decline{++ticket, 99});
  EXPECT_THAT(ear.take(),
              ElementsAre(StartsWith("call "),
                          "S13 a finish waits for a step that may never come: "
                          "request 82"));
}

TEST_F(OrderChecker, S13AFinishIsDueInTime) {
  add(R);
  tell(msg::finish{++ticket, {R, finish_reason::stop, 4, 0}});
  state().idle_due = never;
  tell(msg::decline{++ticket, 99});
  EXPECT_THAT(ear.take(),
              ElementsAre(StartsWith("call "),
                          "S13 a finish waits for a step that may never come: "
                          "request 82"));
}

} // namespace
} // namespace kvtide::test
