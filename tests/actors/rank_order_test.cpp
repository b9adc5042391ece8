// SPDX-License-Identifier: Apache-2.0

/// @file
/// The order checker of a worker at work: each test lets one thing happen that
/// the rules exclude, by a message where a message can do it, else by spoiling
/// the worker's state as a bug would.

#include "actors/gpu_worker.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/breach_ear.hpp"
#include "tests/support/listen.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

namespace kvtide::test {
namespace {

struct rank_state {
  static inline const char* name = "rank";
};

rank_side_actor::behavior_type
fake_rank_side(rank_side_actor::stateful_pointer<rank_state>,
               std::vector<rank_stats>* log) {
  return listen<rank_side_actor>(
    [=](const rank_stats& x) { log->push_back(x); });
}

class RankOrder : public actor_fixture {
protected:
  RankOrder() {
    ear.expect();
    auto cfg = gpu_worker_config{};
    cfg.on_breach = ear.listener();
    uut = world.spawn(gpu_worker, cfg, world.spawn(mute<device_actor>),
                      world.spawn(mute<scheduler_worker_port>),
                      world.spawn(fake_rank_side, &heard));
    tell(msg::register_kv{});
    tell(msg::memory_registered{8, 1, {}, {}});
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
  std::vector<rank_stats> heard;
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
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].order_errors, 2u);
  EXPECT_EQ(heard[0].order_errors_by_rule[4], 1u);
  EXPECT_EQ(heard[0].order_errors_by_rule[12], 1u);
}

} // namespace
} // namespace kvtide::test
