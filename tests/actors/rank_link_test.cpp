// SPDX-License-Identifier: Apache-2.0

#include "actors/alive.hpp"
#include "actors/rank_link.hpp"
#include "messages/scheduler.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/listen.hpp"
#include "tests/support/wire.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide {
namespace {

using test::listen;
using test::mute;
using test::side;

class RankLink : public test::actor_fixture {
protected:
  RankLink() {
    config.retry_delay = 500ms;
    config.patience = 5s;
    scheduler = world.spawn(mute<scheduler_worker_port>);
    door = spawn_door();
    for (rank_id rank : {2U, 5U})
      config.ranks.push_back(life(rank, 1));
    uut = world.spawn(rank_link, config);
  }

  rank_door_actor spawn_door() {
    return world.spawn([this] {
      return listen<rank_door_actor>(
        [this](const msg::join& x) { asked.push_back(x.terms); });
    });
  }

  /// A life of a rank, with a worker that says what it hears.
  msg::host_rank life(rank_id rank, std::uint64_t number) {
    const auto name = std::to_string(rank) + "." + std::to_string(number);
    const auto worker = world.spawn([this, name] {
      return listen<gpu_worker_actor>([this, name](const msg::attach& x) {
        attached.push_back(name + " " + std::to_string(x.incarnation) + " "
                           + std::to_string(x.epoch));
        met = x.scheduler;
      });
    });
    return {rank, number, name, caf::actor_cast<caf::strong_actor_ptr>(worker)};
  }

  /// A new connection, over which the door knocks.
  void connect(std::uint32_t protocol = msg::protocol_version) {
    auto& line = lines.emplace_back(world);
    far_door = line.add(door, side::engine);
    far_link = line.add(uut, side::rank);
    far_scheduler = line.add(scheduler, side::engine);
    knock(protocol);
  }

  void knock(std::uint32_t protocol = msg::protocol_version) {
    world.send(uut, msg::knock{protocol, ptr(far_door)});
    flow();
  }

  void cut() {
    lines.back().cut();
    world.run();
  }

  /// From the door, over the last connection.
  template <class Message>
  void answer(Message x) {
    world.send_as(door, far_link, std::move(x));
    flow();
  }

  void let_in(rank_id rank, incarnation_id incarnation = 1) {
    answer(msg::joined{rank, incarnation, 77, ptr(scheduler)});
  }

  void refuse(rank_id rank, bool for_good) {
    answer(msg::join_refused{1, rank, "because", for_good});
  }

  void flow() {
    world.run();
    for (auto& line : lines)
      line.flow();
  }

  void pass(std::chrono::milliseconds time) {
    for (; time > 0ms; time -= 100ms)
      world.advance(100ms);
    flow();
  }

  std::vector<std::string> take_asked() {
    return std::exchange(asked, {});
  }

  std::vector<std::string> take_attached() {
    return std::exchange(attached, {});
  }

  template <class Handle>
  static caf::strong_actor_ptr ptr(const Handle& x) {
    return caf::actor_cast<caf::strong_actor_ptr>(x);
  }

  rank_link_state& state() {
    return test::state_of<rank_link_state>(uut);
  }

  rank_link_config config;
  std::vector<std::string> asked;
  std::vector<std::string> attached;
  caf::strong_actor_ptr met;
  scheduler_worker_port scheduler;
  rank_door_actor door;
  rank_link_actor uut;
  std::deque<test::wire> lines;
  rank_door_actor far_door;
  rank_link_actor far_link;
  scheduler_worker_port far_scheduler;
};

// -- joining ------------------------------------------------------------------

TEST_F(RankLink, SaysNothingBeforeTheDoorKnocks) {
  pass(1s);
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(RankLink, JoinsWithEveryRankWhenTheDoorKnocks) {
  connect();
  EXPECT_THAT(take_asked(), ElementsAre("2.1", "5.1"));
}

TEST_F(RankLink, WorkerHearsWhereItsSchedulerIs) {
  connect();
  let_in(2, 4);
  EXPECT_THAT(take_attached(), ElementsAre("2.1 4 77"));
  EXPECT_EQ(met, ptr(far_scheduler));
  let_in(5, 6);
  EXPECT_THAT(take_attached(), ElementsAre("5.1 6 77"));
  pass(10s);
  EXPECT_THAT(take_asked(), ElementsAre("2.1", "5.1")) << "each has joined";
}

TEST_F(RankLink, RefusesASchedulerOfAnotherVersion) {
  connect(msg::protocol_version + 1);
  EXPECT_THAT(take_asked(), IsEmpty());
  EXPECT_FALSE(state().door);
}

TEST_F(RankLink, AnotherVersionDoesNotConcernRanksThatHaveJoined) {
  connect();
  let_in(2);
  let_in(5);
  take_asked();
  const auto first = far_door;
  connect(msg::protocol_version + 1);
  EXPECT_EQ(state().door, first);
  EXPECT_THAT(take_asked(), IsEmpty());
  EXPECT_NE(state().misfit, "");
  knock();
  EXPECT_EQ(state().misfit, "") << "the next one is news again";
}

TEST_F(RankLink, JoinsAgainWhenTheSameDoorKnocks) {
  connect();
  let_in(2);
  let_in(5);
  take_asked();
  knock();
  EXPECT_THAT(take_asked(), ElementsAre("2.1", "5.1"));
  take_attached();
  let_in(2);
  EXPECT_THAT(take_attached(), ElementsAre("2.1 1 77"));
}

// -- refusals -----------------------------------------------------------------

TEST_F(RankLink, AsksAgainIfTheRefusalMayPass) {
  connect();
  refuse(2, false);
  let_in(5);
  take_asked();
  pass(400ms);
  EXPECT_THAT(take_asked(), IsEmpty());
  pass(100ms);
  EXPECT_THAT(take_asked(), ElementsAre("2.1"));
  refuse(2, false);
  pass(500ms);
  EXPECT_THAT(take_asked(), ElementsAre("2.1"));
  let_in(2);
  EXPECT_THAT(take_attached(), ElementsAre("5.1 1 77", "2.1 1 77"));
}

TEST_F(RankLink, AsksNoMoreIfTheTwoDoNotFit) {
  connect();
  refuse(0, true); // What it sent was not read.
  let_in(5);
  EXPECT_EQ(state().seats[2].refusal, "because");
  take_asked();
  pass(10s);
  EXPECT_THAT(take_asked(), IsEmpty());
  cut();
  connect();
  EXPECT_THAT(take_asked(), ElementsAre("2.1", "5.1")) << "it may be another";
}

TEST_F(RankLink, KeepsWhatPeersSayShortAndInPrint) {
  connect();
  answer(msg::join_refused{1, 2, "a\nb\x1b" + std::string(1'000, 'c'), true});
  const auto& kept = state().seats[2].refusal;
  EXPECT_EQ(kept.substr(0, 5), "a?b?c");
  EXPECT_EQ(kept.size(), 400u);
}

TEST_F(RankLink, AsksAgainIfNoAnswerComes) {
  connect();
  let_in(2);
  take_asked();
  pass(4'900ms);
  EXPECT_THAT(take_asked(), IsEmpty());
  pass(100ms);
  EXPECT_THAT(take_asked(), ElementsAre("5.1"));
  let_in(5);
  EXPECT_THAT(take_attached(), ElementsAre("2.1 1 77", "5.1 1 77"));
  let_in(5);
  EXPECT_EQ(state().ignored, 1u) << "that was asked once";
}

// -- answers to nobody --------------------------------------------------------

TEST_F(RankLink, IgnoresAndCountsAnswersToNoQuestion) {
  const auto before = msg::joined{2, 1, 77, ptr(scheduler)};
  world.send(uut, before);
  world.send(uut, msg::join_refused{});
  flow();
  EXPECT_EQ(state().ignored, 2u);
  connect();
  world.send(uut, before); // Not from the door.
  world.send_as(scheduler, uut, before);
  world.send_as(scheduler, uut, msg::join_refused{1, 2, "no", true});
  flow();
  let_in(5); // Not its turn.
  let_in(9);
  answer(msg::joined{2, 1, 77, nullptr});
  EXPECT_EQ(state().ignored, 8u);
  EXPECT_THAT(take_attached(), IsEmpty());
  let_in(2);
  let_in(5);
  EXPECT_THAT(take_attached(), ElementsAre("2.1 1 77", "5.1 1 77"));
  let_in(5);
  refuse(5, true);
  EXPECT_EQ(state().ignored, 10u);
  EXPECT_THAT(take_attached(), IsEmpty());
}

TEST_F(RankLink, TakesNoticeOfNoNonsense) {
  world.send(uut, msg::knock{msg::protocol_version, nullptr});
  world.send(caf::actor_cast<caf::actor>(uut), std::string{"what"});
  flow();
  EXPECT_NE(state().misfit, "");
  EXPECT_EQ(state().door, nullptr);
  EXPECT_TRUE(is_alive(uut));
}

// -- loss ---------------------------------------------------------------------

TEST_F(RankLink, WaitsForTheNextKnockWhenTheDoorIsGone) {
  connect();
  let_in(2);
  cut();
  EXPECT_FALSE(state().door);
  take_asked();
  pass(10s);
  EXPECT_THAT(take_asked(), IsEmpty());
  EXPECT_TRUE(state().questions.empty());
  connect();
  EXPECT_THAT(take_asked(), ElementsAre("2.1", "5.1"));
  take_attached();
  let_in(2);
  let_in(5);
  EXPECT_THAT(take_attached(), ElementsAre("2.1 1 77", "5.1 1 77"))
    << "what was asked before is forgotten";
}

TEST_F(RankLink, NextDoorTakesThePlaceOfTheOneBefore) {
  connect();
  const auto old_door = far_door;
  connect();
  take_asked();
  world.send_as(old_door, uut, msg::joined{2, 1, 77, ptr(scheduler)});
  flow();
  EXPECT_EQ(state().ignored, 1u);
  EXPECT_THAT(take_attached(), IsEmpty());
  lines.front().cut();
  flow();
  EXPECT_EQ(state().door, far_door) << "the end of the one before is no news";
  let_in(2);
  let_in(5);
  EXPECT_THAT(take_attached(), ElementsAre("2.1 1 77", "5.1 1 77"));
  let_in(2);
  EXPECT_EQ(state().ignored, 2u) << "the first door was asked that";
}

TEST_F(RankLink, EndOfAnEarlierDoorMayBeUnderWayMeanwhile) {
  connect();
  auto& line = lines.emplace_back(world);
  far_door = line.add(door, side::engine);
  world.send(uut, msg::knock{msg::protocol_version, ptr(far_door)});
  lines.front().cut(side::rank);
  flow();
  EXPECT_EQ(state().door, far_door);
}

// -- other lives --------------------------------------------------------------

TEST_F(RankLink, AnotherLifeJoinsAtOnce) {
  connect();
  let_in(2);
  let_in(5);
  take_asked();
  take_attached();
  world.send(uut, life(2, 9));
  flow();
  EXPECT_THAT(take_asked(), ElementsAre("2.9"));
  let_in(2, 2);
  EXPECT_THAT(take_attached(), ElementsAre("2.9 2 77"));
}

TEST_F(RankLink, AnotherLifeWaitsForADoor) {
  world.send(uut, life(2, 9));
  flow();
  pass(1s);
  EXPECT_THAT(take_asked(), IsEmpty());
  connect();
  EXPECT_THAT(take_asked(), ElementsAre("2.9", "5.1"));
}

TEST_F(RankLink, AnswerToAnEarlierLifeIsNotTheNextOnes) {
  connect();
  world.send(uut, life(2, 9));
  flow();
  EXPECT_THAT(take_asked(), ElementsAre("2.1", "5.1", "2.9"));
  let_in(2, 1);
  let_in(5, 1);
  EXPECT_THAT(take_attached(), ElementsAre("5.1 1 77"));
  EXPECT_EQ(state().ignored, 1u);
  let_in(2, 2);
  EXPECT_THAT(take_attached(), ElementsAre("2.9 2 77"));
}

TEST_F(RankLink, RefusalOfAnEarlierLifeIsNotTheNextOnes) {
  connect();
  world.send(uut, life(2, 9));
  flow();
  refuse(2, true);
  EXPECT_EQ(state().ignored, 1u);
  EXPECT_EQ(state().seats[2].refusal, "");
}

TEST_F(RankLink, RankWithoutAWorkerDoesNotJoin) {
  world.kill(caf::actor_cast<gpu_worker_actor>(config.ranks[0].worker));
  connect();
  EXPECT_THAT(take_asked(), ElementsAre("5.1"));
}

} // namespace
} // namespace kvtide
