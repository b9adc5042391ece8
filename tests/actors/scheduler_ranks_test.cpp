// SPDX-License-Identifier: Apache-2.0

/// @file
/// Ranks that join late, twice, or die while simulated time moves.

#include "actors/cache_manager.hpp"
#include "actors/scheduler.hpp"
#include "tests/actors/short_forms.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/listen.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide {
namespace {

struct fake_state {
  static inline const char* name = "fake";
};

struct heard {
  std::vector<ticket_id> done;
  std::vector<step_plan> plans;
  std::vector<rank_id> lost;
  std::size_t back = 0;
  std::size_t lost_caches = 0;
  stats counters;
};

engine_actor::behavior_type
fake_engine(engine_actor::stateful_pointer<fake_state>, heard* log) {
  return test::listen<engine_actor>(
    [=](const step_plan& x) { log->plans.push_back(x); },
    [=](const stats_answer& x) { log->counters = x.values; },
    [=](const call_done& x) { log->done.push_back(x.ticket); },
    [=](const rank_lost& x) { log->lost.push_back(x.rank); },
    [=](const rank_back&) { ++log->back; },
    [=](const cache_lost&) { ++log->lost_caches; });
}

/// Says nothing by itself, not even that time has moved.
gpu_worker_actor::behavior_type
mute_worker(gpu_worker_actor::stateful_pointer<fake_state>,
            std::vector<job_id>* asked) {
  return test::listen<gpu_worker_actor>([=](const msg::report_again& x) {
    asked->insert(asked->end(), x.silent.begin(), x.silent.end());
  });
}

/// Runs out of memory as soon as it is asked.
cache_manager_actor::behavior_type
throwing_cache(cache_manager_actor::stateful_pointer<fake_state>) {
  return test::listen<cache_manager_actor>(
    [](const msg::search&) { throw std::bad_alloc{}; },
    [](const msg::prepare_stores&) { throw std::bad_alloc{}; },
    [](const msg::prepare_load&) { throw std::bad_alloc{}; },
    [](const msg::complete_jobs&) { throw std::bad_alloc{}; },
    [](const msg::drain_events&) { throw std::bad_alloc{}; },
    [](const msg::get_pool_report&) { throw std::bad_alloc{}; });
}

class SchedulerRanks : public test::actor_fixture {
protected:
  SchedulerRanks() {
    opts.device = device_kind::host_virtual;
    shape
      = std::make_shared<const core::layout>(core::make_layout(opts).value());
    cache = world.spawn(cache_manager, cache_manager_config{shape, opts});
    engine = world.spawn(fake_engine, &log);
    uut = world.spawn(scheduler, scheduler_config{shape, opts, {}}, cache,
                      engine);
    for (auto& worker : workers)
      worker = world.spawn(mute_worker, &asked);
  }

  template <class Message>
  void tell(Message message) {
    world.send(uut, std::move(message));
    world.run();
  }

  void join(rank_id rank, incarnation_id incarnation = 1) {
    world.send_as(workers[rank], uut, msg::worker_ready{rank, incarnation, 8});
    world.run();
  }

  void tick(rank_id rank, incarnation_id incarnation = 1) {
    world.send_as(workers[rank], uut, msg::ticked{rank, incarnation, never});
    world.run();
  }

  stats counters() {
    tell(msg::get_stats{++last_ticket});
    return log.counters;
  }

  /// Above those that the tests choose.
  ticket_id last_ticket = 99;
  options opts = test::with_ranks(2);
  std::shared_ptr<const core::layout> shape;
  heard log;
  /// Jobs that ranks were asked for.
  std::vector<job_id> asked;
  cache_manager_actor cache;
  engine_actor engine;
  scheduler_actor uut;
  std::array<gpu_worker_actor, 2> workers;
};

TEST_F(SchedulerRanks, IsAdvancedEvenIfARankDiedBehindTheCall) {
  join(0);
  join(1);
  tell(msg::advance{1, 0});
  world.send(uut, msg::advance{2, 0});
  world.kill(workers[1]);
  tick(0);
  EXPECT_THAT(log.done, ElementsAre(1u));
  tick(0);
  EXPECT_THAT(log.done, ElementsAre(1u, 2u));
  EXPECT_THAT(log.lost, ElementsAre(1u));
}

TEST_F(SchedulerRanks, CountsOneAnswerPerRankAndLife) {
  join(0);
  join(1);
  tell(msg::advance{1, 0});
  tick(0);
  tick(0);
  tick(1, 2);
  tell(msg::ticked{5, 1, never});
  EXPECT_THAT(log.done, IsEmpty());
  tick(1);
  EXPECT_THAT(log.done, ElementsAre(1u));
  EXPECT_EQ(counters().order_errors, 3u);
}

TEST_F(SchedulerRanks, S12CountsARankThatLeavesAndHasNotJoined) {
  join(0);
  tell(msg::worker_left{0, 2});
  tell(msg::worker_left{1, 1});
  tell(msg::worker_left{5, 1});
  EXPECT_EQ(counters().order_errors_by_rule[12], 3u);
  tell(msg::worker_left{0, 1});
  EXPECT_EQ(counters().order_errors, 3u);
}

TEST_F(SchedulerRanks, OpensThePoolWhenTheLastOneRegistersAgain) {
  join(0);
  tell(msg::worker_left{0, 1});
  join(1);
  EXPECT_EQ(counters().host_slots, 0u);
  join(0);
  EXPECT_EQ(counters().host_slots, 8u);
}

TEST_F(SchedulerRanks, StoresWhatWasRefusedBeforeTheyJoined) {
  tell(msg::add{1, {7, 4, 4, false, false, false, no_cap, 0, 0, {}}});
  tell(msg::extend{2, {7, 0, {prefix_hash{"a", 1}}, {}, {}}});
  tell(msg::step{3, {1, {{7, row_kind::fresh, {{1, 2}}, 0, 4, 4}}, {}, {}}});
  EXPECT_THAT(log.plans.back().stores, IsEmpty());
  join(0);
  join(1);
  tell(msg::step{4, {2, {{7, row_kind::running, {}, 4, 1, 5}}, {}, {}}});
  EXPECT_EQ(log.plans.back().stores.size(), 1u);
}

TEST_F(SchedulerRanks, AsksSilentRanksInSimulatedTime) {
  join(0);
  join(1);
  tell(msg::add{1, {7, 4, 4, false, false, false, no_cap, 0, 0, {}}});
  tell(msg::extend{2, {7, 0, {prefix_hash{"a", 1}}, {}, {}}});
  tell(msg::step{3, {1, {{7, row_kind::fresh, {{1, 2}}, 0, 4, 4}}, {}, {}}});
  tell(msg::transfers_done{{{0, 0, 1, job_status::done, 0}}});
  const auto silence = nanoseconds_t{20'000'000'000};
  tell(msg::advance{4, silence - 1});
  for (auto i = 0; i < 2; ++i)
    for (rank_id rank = 0; rank < 2; ++rank)
      tick(rank);
  EXPECT_THAT(log.done, ElementsAre(4u));
  EXPECT_THAT(asked, IsEmpty());
  tell(msg::advance{5, silence});
  for (auto i = 0; i < 2; ++i)
    for (rank_id rank = 0; rank < 2; ++rank)
      tick(rank);
  EXPECT_THAT(asked, ElementsAre(0u)) << "one rank, one job";
  EXPECT_THAT(log.done, ElementsAre(4u)) << "the answer comes first";
  tell(msg::transfers_done{{{0, 1, 1, job_status::done, 0}}});
  for (auto i = 0; i < 2; ++i)
    for (rank_id rank = 0; rank < 2; ++rank)
      tick(rank);
  EXPECT_THAT(log.done, ElementsAre(4u, 5u));
  EXPECT_EQ(counters().jobs_in_flight, 0u);
}

TEST_F(SchedulerRanks, ALaterLifeEndsTheOneBeforeAnEarlierOneNever) {
  join(0);
  join(1, 2);
  world.send_as(workers[0], uut, msg::worker_ready{1, 1, 8});
  world.send_as(workers[0], uut, msg::worker_ready{1, 2, 8});
  world.run();
  EXPECT_THAT(log.lost, IsEmpty());
  EXPECT_EQ(counters().order_errors, 2u);
  const auto later = world.spawn(mute_worker, &asked);
  world.send_as(later, uut, msg::worker_ready{1, 3, 8});
  world.run();
  EXPECT_THAT(log.lost, ElementsAre(1u));
  EXPECT_EQ(log.back, 1u);
  world.kill(workers[1]); // Heard of too late to matter.
  EXPECT_THAT(log.lost, ElementsAre(1u));
  EXPECT_EQ(counters().order_errors, 2u);
}

TEST_F(SchedulerRanks, AnExceptionOfTheCacheManagerIsADeath) {
  uut = world.spawn(scheduler, scheduler_config{shape, opts, {}},
                    world.spawn(throwing_cache), engine);
  join(0);
  join(1);
  EXPECT_EQ(counters().host_slots, 0u) << "answered in its place";
  EXPECT_EQ(log.lost_caches, 1u);
  EXPECT_EQ(counters().host_slots, 8u) << "of the next one";
  EXPECT_EQ(counters().lost_caches, 1u);
}

// Its load is in no plan, so the ranks that are left know nothing of it.
TEST(Ranks, S4_nobody_waits_for_a_load_that_ended_with_a_rank_before_its_step) {
  auto sys = test::test_system{{test::with_ranks(2), {8, 8}}};
  warm(sys, test::P, {{1, 2}}, 8);
  sys.add(test::R, 9, {test::P, 8});
  ASSERT_EQ(sys.lookup(test::R), 8);
  sys.alloc(test::R, {{4, 5, 6}}, 8);
  EXPECT_THAT(sys.reset(), ElementsAre(1u));
  sys.kill_rank(1);
  EXPECT_EQ(sys.step(), "-");
  EXPECT_EQ(sys.counters().order_errors, 0u);
  EXPECT_THAT(sys.jobs(), IsEmpty());
}

/// Answers nothing.
cache_manager_actor::behavior_type
mute_cache(cache_manager_actor::stateful_pointer<fake_state>) {
  return test::listen<cache_manager_actor>();
}

TEST_F(SchedulerRanks, S13PlansAFinishOnceHoweverLongItsTurnTakesToCome) {
  opts.device = device_kind::host;
  uut = world.spawn(scheduler, scheduler_config{shape, opts, {}},
                    world.spawn(mute_cache), engine);
  tell(msg::add{1, {7, 4, 4, false, false, false, no_cap, 0, 0, {}}});
  tell(msg::finish{2, {7, finish_reason::stop, 4, 0}});
  tell(msg::get_stats{3}); // Waits for the cache manager.
  for (auto i = 0; i < 3; ++i) {
    world.pass(opts.idle_delay);
    world.run();
    EXPECT_EQ(test::state_of<scheduler_state>(uut).queue.size(), 1u);
  }
}

TEST_F(SchedulerRanks, MayRegisterTheirMemoryAgain) {
  join(0);
  join(1);
  join(1);
  EXPECT_EQ(counters().order_errors, 0u);
  EXPECT_EQ(counters().host_slots, 8u);
}

} // namespace
} // namespace kvtide
