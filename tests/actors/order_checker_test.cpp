// SPDX-License-Identifier: Apache-2.0

/// @file
/// The order checker at work: each test lets one thing happen that S1 to S13
/// exclude, by a message where a message can do it, else by spoiling an actor's
/// state as a bug would.

#include "actors/device.hpp"
#include "actors/gpu_worker.hpp"
#include "actors/scheduler.hpp"
#include "core/layout.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/breach_ear.hpp"
#include "tests/support/listen.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

namespace kvtide::test {
namespace {

// -- neighbours that only listen ----------------------------------------------

struct mute_state {
  static inline const char* name = "mute";
};

struct questions {
  std::vector<msg::search> searches;
  std::vector<msg::prepare_stores> stores;
  std::vector<msg::prepare_load> loads;
  std::vector<msg::get_pool_report> reports;
  std::vector<msg::complete_job> completed;
};

cache_manager_actor::behavior_type
mute_cache(cache_manager_actor::stateful_pointer<mute_state>, questions* log) {
  return listen<cache_manager_actor>(
    [=](const msg::search& x) { log->searches.push_back(x); },
    [=](const msg::prepare_stores& x) { log->stores.push_back(x); },
    [=](const msg::prepare_load& x) { log->loads.push_back(x); },
    [=](const msg::complete_job& x) { log->completed.push_back(x); },
    [=](const msg::get_pool_report& x) { log->reports.push_back(x); });
}

struct answers {
  std::vector<lookup_answer> lookups;
  std::vector<step_plan> plans;
  std::vector<stats_answer> stats;
};

engine_actor::behavior_type
mute_engine(engine_actor::stateful_pointer<mute_state>, answers* log) {
  return listen<engine_actor>(
    [=](const lookup_answer& x) { log->lookups.push_back(x); },
    [=](const step_plan& x) { log->plans.push_back(x); },
    [=](const stats_answer& x) { log->stats.push_back(x); });
}

gpu_worker_actor::behavior_type
mute_worker(gpu_worker_actor::stateful_pointer<mute_state>) {
  return listen<gpu_worker_actor>();
}

// -- the scheduler ------------------------------------------------------------

constexpr request_id R = 1;
constexpr request_id Q = 2;

/// Two ranks that only listen, and a cache manager that the test plays.
class OrderChecker : public actor_fixture {
protected:
  OrderChecker() {
    ear.expect();
    auto opts = plain_options();
    opts.ranks = 2;
    const auto shape
      = std::make_shared<const core::layout>(core::make_layout(opts).value());
    auto cfg = scheduler_config{shape, opts, ear.listener()};
    uut
      = world.spawn(scheduler, std::move(cfg), world.spawn(mute_cache, &asked),
                    world.spawn(mute_engine, &heard));
    for (rank_id rank = 0; rank < opts.ranks; ++rank)
      world.send_as(world.spawn(mute_worker), uut,
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
    tell(msg::stores_prepared{state().turn, {}});
  }

  /// The cache manager takes the one chunk that was offered last.
  void grant(slot_id slot) {
    auto out = core::store_grant{};
    out.accepted.push_back({0, slot});
    tell(msg::stores_prepared{state().turn, {std::move(out)}});
  }

  /// Job 0 stores what R computed.
  void store(slot_id slot = 7) {
    add(R);
    run(R, 5);
    grant(slot);
  }

  void report(job_id job, rank_id rank, job_status status = job_status::done) {
    tell(msg::transfer_done{job, rank, 1, status, 0});
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

TEST_F(OrderChecker, S1ARequestAnswersALookupOnce) {
  add(R);
  tell(msg::lookup{++ticket, {{R, 0, 4}}});
  ASSERT_EQ(asked.searches.size(), 1u);
  tell(msg::search_keys{state().turn, R, {}});
  tell(msg::search_keys{state().turn, Q, {}});
  EXPECT_EQ(ear.take().size(), 2u);
  EXPECT_EQ(asked.searches.size(), 1u);
}

TEST_F(OrderChecker, S1ARequestAnswersAStepOnce) {
  add(R);
  run(R, 5);
  ASSERT_EQ(asked.stores.size(), 1u);
  auto again = msg::store_offer{};
  again.turn = state().turn;
  again.offer.request = R;
  tell(again);
  again.offer.request = Q;
  tell(again);
  EXPECT_EQ(ear.take().size(), 2u);
  EXPECT_EQ(asked.stores.size(), 1u);
}

TEST_F(OrderChecker, S1ThePoolAnswersWhatItWasAsked) {
  add(R);
  run(R, 5);
  tell(msg::stores_prepared{state().turn, {}});
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

TEST_F(OrderChecker, S7ALoadingRequestIsNotScheduled) {
  auto sys = test_system{plain_options()};
  sys.expect_breaches();
  sys.add(R, 8);
  (void)sys.step({{{R, 8, {{1, 2}}}}, {}});
  sys.done(0);
  sys.add(Q, 9, {R, 8});
  (void)sys.lookup(Q);
  sys.alloc(Q, {{4, 5, 6}}, 8);
  (void)sys.step({{{Q, 1, {{4, 5, 6}}}}, {}});
  EXPECT_THAT(
    sys.breaches(),
    ElementsAre("S7 a step schedules a request that is still loading: "
                "step 2, request 2 came before the outcome of job 1"));
}

TEST_F(OrderChecker, S7BlocksOfALoadAreNotReused) {
  auto sys = test_system{plain_options()};
  sys.expect_breaches();
  sys.add(R, 8);
  (void)sys.step({{{R, 8, {{1, 2}}}}, {}});
  sys.done(0);
  sys.add(Q, 9, {R, 8});
  (void)sys.lookup(Q);
  sys.alloc(Q, {{4, 5, 6}}, 8);
  sys.add(3, 4);
  (void)sys.step({{{3, 4, {{5}}}}, {}});
  EXPECT_THAT(sys.breaches(),
              ElementsAre("S7 a block was reused that a load may still write: "
                          "block 5, load 1"));
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
  state().jobs.find(0)->missing = 1;
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
  tell(msg::transfer_done{0, 0, 2, job_status::done, 0});
  EXPECT_THAT(ear.take(), ElementsAre("S12 a report of another life of a rank "
                                      "came: job 0, rank 0, incarnation 2"));
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
                          "request 1"));
}

TEST_F(OrderChecker, S13AFinishIsDueInTime) {
  add(R);
  tell(msg::finish{++ticket, {R, finish_reason::stop, 4, 0}});
  state().idle_due = never;
  tell(msg::decline{++ticket, 99});
  EXPECT_THAT(ear.take(),
              ElementsAre(StartsWith("call "),
                          "S13 a finish waits for a step that may never come: "
                          "request 1"));
}

// -- a worker and its device --------------------------------------------------

struct rank_log {
  std::vector<rank_stats> stats;
};

rank_side_actor::behavior_type
mute_rank_side(rank_side_actor::stateful_pointer<mute_state>, rank_log* log) {
  return listen<rank_side_actor>(
    [=](const rank_stats& x) { log->stats.push_back(x); });
}

scheduler_worker_port::behavior_type
mute_scheduler(scheduler_worker_port::stateful_pointer<mute_state>) {
  return {
    [](const msg::worker_ready&) {},
    [](const msg::transfer_done&) {},
    [](const msg::ticked&) {},
  };
}

device_actor::behavior_type
mute_device(device_actor::stateful_pointer<mute_state>) {
  return {
    [](const msg::register_memory&) {}, [](const msg::unregister_memory&) {},
    [](const msg::submit_jobs&) {},     [](const msg::make_fence&) {},
    [](const msg::device_tick&) {},     [](const msg::device_woke&) {},
  };
}

class RankOrder : public actor_fixture {
protected:
  RankOrder() {
    ear.expect();
    auto cfg = gpu_worker_config{};
    cfg.on_breach = ear.listener();
    uut = world.spawn(gpu_worker, cfg, world.spawn(mute_device),
                      world.spawn(mute_scheduler),
                      world.spawn(mute_rank_side, &heard));
    tell(msg::register_kv{});
    tell(msg::memory_registered{8, 1, {}});
  }

  template <class Message>
  void tell(Message message) {
    world.send(uut, std::move(message));
    world.run();
  }

  static std::vector<job> one(job_id id, job_kind kind) {
    auto out = job{};
    out.id = id;
    out.kind = kind;
    return {out};
  }

  void begin(step_id step, std::vector<job_id> flush = {}) {
    tell(msg::begin_step{step, {}, {}, std::move(flush)});
  }

  void end(step_id step) {
    tell(msg::end_step{step, {}});
  }

  void stores(step_id step, job_id id) {
    tell(msg::stores{step, one(id, job_kind::store)});
  }

  gpu_worker_state& state() {
    return state_of<gpu_worker_state>(uut);
  }

  breach_ear ear;
  rank_log heard;
  gpu_worker_actor uut;
};

TEST_F(RankOrder, S3AStoreIsNotHandedOverInItsOwnStep) {
  begin(1);
  stores(1, 4);
  state().ended = true;
  state().idle_since = 0;
  tell(msg::timer{});
  EXPECT_THAT(ear.take(), ElementsAre(StartsWith("S3 a store was handed over "
                                                 "before the next step")));
}

TEST_F(RankOrder, S4AJobComesOnce) {
  begin(1);
  stores(1, 4);
  stores(1, 4);
  begin(3);
  EXPECT_THAT(ear.take(),
              ElementsAre("S4 a job came twice, or behind later ones: job 4",
                          StartsWith("S12 a plan came out of order: step 3")));
}

TEST_F(RankOrder, S5ComputeDoesNotGoOnBeforeTheFlush) {
  begin(1);
  stores(1, 4);
  end(1);
  begin(2, {4});
  tell(msg::fence_made{2, {}});
  EXPECT_THAT(ear.take(), ElementsAre("S5 compute goes on before the flush "
                                      "ended: step 2, job 4"));
}

TEST_F(RankOrder, S5AStreamMayWaitInsteadOfTheHost) {
  begin(1);
  stores(1, 4);
  end(1);
  begin(2, {4});
  tell(msg::fence_made{2, {fence::kind_t::event, 9}});
  EXPECT_THAT(ear.take(), IsEmpty());
}

TEST_F(RankOrder, S6AStepBeginsBehindTheEndOfTheOneBefore) {
  begin(1);
  begin(2);
  state().ended = true;
  begin(3);
  EXPECT_THAT(ear.take(), ElementsAre(StartsWith("S6 a plan was run before the "
                                                 "end of the step before it")));
}

TEST_F(RankOrder, S6CopiesCarryTheLastCompute) {
  begin(1);
  stores(1, 4);
  end(1);
  state().computed = std::nullopt;
  begin(2);
  EXPECT_THAT(ear.take(), ElementsAre(StartsWith("S6 copies do not wait for "
                                                 "the last compute")));
}

TEST_F(RankOrder, S13DeferredStoresHaveATimer) {
  begin(1);
  end(1);
  stores(1, 4);
  EXPECT_THAT(ear.take(), IsEmpty());
  state().wake_up = {};
  state().check_rest();
  EXPECT_THAT(ear.take(), ElementsAre(StartsWith("S13 stores wait for a step "
                                                 "that may never come")));
}

TEST_F(RankOrder, TheRankHearsItsCounts) {
  begin(1);
  begin(3);
  tell(msg::device_breach{core::order_rule::s4});
  tell(msg::get_rank_stats{});
  ASSERT_EQ(heard.stats.size(), 1u);
  EXPECT_EQ(heard.stats[0].order_errors, 2u);
  EXPECT_EQ(heard.stats[0].order_errors_by_rule[4], 1u);
  EXPECT_EQ(heard.stats[0].order_errors_by_rule[12], 1u);
}

class DeviceOrder : public actor_fixture {
protected:
  DeviceOrder() {
    ear.expect();
    auto cfg = device_config{};
    cfg.kind = device_kind::host_virtual;
    cfg.on_breach = ear.listener();
    uut = world.spawn_device(std::move(cfg));
    worker = world.spawn(mute_worker);
  }

  template <class Message>
  void ask(Message message) {
    world.send_as(worker, uut, std::move(message));
    world.run();
  }

  static std::vector<job> store(job_id id) {
    auto out = job{};
    out.id = id;
    return {out};
  }

  breach_ear ear;
  gpu_worker_actor worker;
  device_actor uut;
};

TEST_F(DeviceOrder, S4NobodyWaitsForAJobThatWasNotHandedOver) {
  ask(msg::submit_jobs{store(3), {}, {}});
  ask(msg::make_fence{2, {3, 4}});
  EXPECT_THAT(ear.take(),
              ElementsAre("S4 a job was waited for before it was handed over: "
                          "job 4 in the fence of step 2"));
}

TEST_F(DeviceOrder, S6ComputeDoesNotGoBack) {
  ask(msg::submit_jobs{store(3), {}, {}, step_id{6}});
  ask(msg::submit_jobs{store(4), {}, {}, step_id{5}});
  EXPECT_THAT(ear.take(), ElementsAre(StartsWith("S6 copies wait for compute "
                                                 "of an earlier step")));
}

} // namespace
} // namespace kvtide::test
