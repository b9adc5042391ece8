// SPDX-License-Identifier: Apache-2.0

#include "messages/gpu_worker.hpp"
#include "messages/scheduler.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/listen.hpp"
#include "tests/support/wire.hpp"

#include <caf/exit_reason.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide {
namespace {

using test::listen;
using test::mute;
using test::side;

class Wire : public test::actor_fixture {
protected:
  Wire() {
    for (auto* one : {&first, &second})
      *one = world.spawn([this](gpu_worker_actor::pointer self) {
        self->set_down_handler(
          [this](const caf::down_msg& x) { ends.push_back(x.reason); });
        return listen<gpu_worker_actor>(
          [this](const msg::pause& x) { heard.push_back(x.step); },
          [this, self](const msg::attach& x) { self->monitor(x.scheduler); },
          [this, self](const msg::tick&) { sender = self->current_sender(); });
      });
    boss = world.spawn(mute<scheduler_worker_port>);
    line.emplace(world);
    far_boss = line->add(boss, side::engine);
    far_first = line->add(first, side::rank);
    far_second = line->add(second, side::rank);
  }

  void send(const gpu_worker_actor& to, step_id step) {
    world.send_as(boss, to, msg::pause{step});
    world.run();
  }

  std::vector<step_id> heard;
  std::vector<caf::error> ends;
  caf::strong_actor_ptr sender;
  gpu_worker_actor first;
  gpu_worker_actor second;
  scheduler_worker_port boss;
  std::optional<test::wire> line;
  scheduler_worker_port far_boss;
  gpu_worker_actor far_first;
  gpu_worker_actor far_second;
};

TEST_F(Wire, NothingArrivesUnlessTheTestSaysSo) {
  send(far_first, 1);
  EXPECT_THAT(heard, IsEmpty());
  EXPECT_THAT(line->under_way(side::rank), ElementsAre("pause"));
  EXPECT_TRUE(line->deliver(side::rank));
  EXPECT_FALSE(line->deliver(side::rank));
  world.run();
  EXPECT_THAT(heard, ElementsAre(1));
}

TEST_F(Wire, OnlyMessagesOfOnePairKeepTheirOrder) {
  send(far_first, 1);
  send(far_first, 2);
  send(far_second, 3);
  EXPECT_FALSE(line->deliver(side::rank, 1));
  EXPECT_TRUE(line->deliver(side::rank, 2));
  line->flow();
  EXPECT_THAT(heard, ElementsAre(3, 1, 2));
}

TEST_F(Wire, ReceiverSeesTheSenderAsItIsSeenFromThere) {
  world.send_as(boss, far_first, msg::tick{1});
  line->flow();
  EXPECT_EQ(sender, caf::actor_cast<caf::strong_actor_ptr>(far_boss));
}

TEST_F(Wire, EitherSideMayFindTheConnectionCut) {
  world.send(
    first, msg::attach{1, 1, caf::actor_cast<caf::strong_actor_ptr>(far_boss)});
  send(far_first, 1);
  line->cut(side::engine);
  world.run();
  EXPECT_THAT(ends, IsEmpty());
  EXPECT_TRUE(line->deliver(side::rank)) << "it was under way already";
  send(far_first, 2);
  EXPECT_THAT(line->under_way(side::rank), IsEmpty());
  line->cut(side::rank);
  world.run();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0], caf::exit_reason::remote_link_unreachable);
  EXPECT_THAT(heard, ElementsAre(1));
}

TEST_F(Wire, WhatWasUnderWayToACutSideIsLost) {
  send(far_first, 1);
  line->cut();
  line->flow();
  EXPECT_THAT(heard, IsEmpty());
}

} // namespace
} // namespace kvtide
