// SPDX-License-Identifier: Apache-2.0

/// @file
/// Simulated time, as the scheduler moves it.

#include "actors/cache_manager.hpp"
#include "actors/ports.hpp"
#include "actors/scheduler.hpp"
#include "core/layout.hpp"
#include "tests/actors/short_forms.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/listen.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

struct fake_worker_state {
  static inline const char* name = "fake-worker";
  std::vector<nanoseconds_t> ticks;
  std::vector<job_id> asked;
};

/// Hears everything and answers nothing.
gpu_worker_actor::behavior_type
fake_worker(gpu_worker_actor::stateful_pointer<fake_worker_state> self) {
  return listen<gpu_worker_actor>(
    [self](const msg::tick& x) { self->state.ticks.push_back(x.now); },
    [self](const msg::report_again& x) { self->state.asked = x.silent; });
}

class SchedulerTime : public actor_fixture {
protected:
  SchedulerTime() {
    auto opts = with_ranks(2);
    opts.device = device_kind::host_virtual;
    opts.idle_delay = std::chrono::milliseconds{5};
    auto shape
      = std::make_shared<const core::layout>(core::make_layout(opts).value());
    queue = std::make_shared<engine_queue>(ready_fd::create().value());
    auto cache = world.spawn(cache_manager, cache_manager_config{shape, opts});
    auto port
      = world.spawn(engine_port, queue, std::shared_ptr<const one_caller>{});
    uut
      = world.spawn(scheduler, scheduler_config{shape, opts, {}}, cache, port);
    for (rank_id rank = 0; rank < opts.ranks; ++rank) {
      workers.push_back(world.spawn(fake_worker));
      world.send_as(workers.back(), uut, msg::worker_ready{rank, 1, 8});
    }
    world.run();
  }

  template <class Message>
  void tell(Message message) {
    message.ticket = ++ticket;
    world.send(uut, std::move(message));
    world.run();
  }

  void advance(nanoseconds_t now) {
    world.send(uut, msg::advance{++ticket, now});
    world.run();
  }

  void tick(rank_id rank, nanoseconds_t next_due) {
    world.send_as(workers[rank], uut, msg::ticked{rank, 1, next_due});
    world.run();
  }

  std::vector<nanoseconds_t> ticks(rank_id rank) {
    return std::exchange(state_of<fake_worker_state>(workers[rank]).ticks, {});
  }

  bool answered() {
    auto out = false;
    for (const auto& event : queue->poll())
      out = out || std::holds_alternative<call_done>(event);
    return out;
  }

  ticket_id ticket = 0;
  std::shared_ptr<engine_queue> queue;
  scheduler_actor uut;
  std::vector<gpu_worker_actor> workers;
};

TEST_F(SchedulerTime, StopsWhereverSomeRankHasSomethingToDo) {
  advance(100);
  EXPECT_THAT(ticks(0), ElementsAre(0));
  tick(0, 40);
  tick(1, 30);
  EXPECT_THAT(ticks(0), ElementsAre(30));
  EXPECT_THAT(ticks(1), ElementsAre(0, 30));
  tick(1, never);
  tick(0, 40);
  EXPECT_THAT(ticks(0), ElementsAre(40));
  tick(0, never);
  tick(1, never);
  EXPECT_THAT(ticks(0), ElementsAre(100));
  EXPECT_FALSE(answered());
  tick(0, never);
  tick(1, 200);
  EXPECT_TRUE(answered());
}

TEST_F(SchedulerTime, GoesOnWithoutARankThatDiesBeforeItsTick) {
  advance(100);
  tick(0, never);
  EXPECT_FALSE(answered());
  world.kill(workers[1]);
  EXPECT_THAT(ticks(0), ElementsAre(0, 100));
  tick(0, never);
  EXPECT_TRUE(answered());
}

TEST_F(SchedulerTime, GoesOnAfterTheDeathOfTheLastRank) {
  advance(100);
  world.kill(workers[0]);
  world.kill(workers[1]);
  EXPECT_TRUE(answered());
}

TEST_F(SchedulerTime, S13PlansAFinishAtItsMoment) {
  constexpr auto idle_delay = nanoseconds_t{5'000'000};
  tell(msg::add{0, {R, 4, 4, false, false, false, no_cap, 0, 0, {}}});
  tell(msg::finish{0, {R, finish_reason::stop, 4, 0}});
  advance(2 * idle_delay);
  for (auto now : {nanoseconds_t{0}, idle_delay}) {
    EXPECT_EQ(state_of<scheduler_state>(uut).rows.count(R), 1u);
    for (rank_id rank : {0, 1}) {
      EXPECT_THAT(ticks(rank), ElementsAre(now));
      tick(rank, never);
    }
  }
  EXPECT_EQ(state_of<scheduler_state>(uut).rows.count(R), 0u);
  EXPECT_FALSE(answered());
}

TEST_F(SchedulerTime, S9AsksForReportsThatDoNotCome) {
  constexpr auto patience = nanoseconds_t{20'000'000'000};
  tell(msg::add{0, {R, 4, 4, false, false, false, no_cap, 0, 0, {}}});
  tell(msg::extend{0, {R, 0, {prefix_hash{"a", 1}}, {}, {}}});
  tell(msg::step{0, {1, {{R, row_kind::fresh, {{5}}, 0, 4, 4}}, {}, {}}});
  advance(2 * patience);
  for (auto now : {nanoseconds_t{0}, patience}) {
    for (rank_id rank : {0, 1}) {
      EXPECT_THAT(state_of<fake_worker_state>(workers[rank]).asked, IsEmpty());
      EXPECT_THAT(ticks(rank), ElementsAre(now));
    }
    tick(0, never);
    tick(1, never);
  }
  for (rank_id rank : {0, 1}) {
    EXPECT_THAT(state_of<fake_worker_state>(workers[rank]).asked,
                ElementsAre(0u));
    EXPECT_THAT(ticks(rank), ElementsAre(patience)) << "the answers come first";
  }
}

TEST_F(SchedulerTime, CountsAnAnswerThatNobodyAskedFor) {
  tick(0, never);
  EXPECT_EQ(state_of<scheduler_state>(uut).order.total(), 1u);
}

} // namespace
} // namespace kvtide::test
