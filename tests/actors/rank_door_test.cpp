// SPDX-License-Identifier: Apache-2.0

/// @file
/// Who is let in, as which life, and who is told why not.

#include "actors/rank_door.hpp"
#include "messages/join_terms.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/listen.hpp"

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/sec.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace kvtide {
namespace {

struct fake_state {
  static inline const char* name = "fake";
};

struct heard {
  std::vector<msg::joined> joined;
  std::vector<msg::join_refused> refused;
};

rank_link_port::behavior_type
fake_link(rank_link_port::stateful_pointer<fake_state>, heard* log) {
  return test::listen<rank_link_port>(
    [=](const msg::joined& x) { log->joined.push_back(x); },
    [=](const msg::join_refused& x) { log->refused.push_back(x); });
}

scheduler_worker_port::behavior_type
fake_scheduler(scheduler_worker_port::stateful_pointer<fake_state>) {
  return test::mute<scheduler_worker_port>();
}

/// Rank 0 lives here, the others elsewhere.
options one_of_three_here() {
  auto out = options{};
  out.ranks = 3;
  out.workers.resize(3);
  out.workers[1].where = worker_place::kind::dials_in;
  out.workers[2].where = worker_place::kind::dialed;
  return out;
}

constexpr std::uint64_t epoch = 77;

class RankDoor : public test::actor_fixture {
protected:
  RankDoor() {
    uut = world.spawn(rank_door, rank_door_config{opts, scheduler, epoch});
    for (std::size_t i = 0; i < links.size(); ++i)
      links[i] = world.spawn(fake_link, &logs[i]);
  }

  ~RankDoor() override {
    scheduler = nullptr;
    for (auto& log : logs)
      log = {}; // No handle may outlive the actor system.
  }

  /// The link asks for a rank in the name of one life of its memory.
  void join(std::size_t link, rank_id rank, std::uint64_t life) {
    say(link,
        {msg::protocol_version, encode_terms(terms_of(opts, rank, life))});
  }

  void say(std::size_t link, msg::join x) {
    world.send_as(links[link], uut, std::move(x));
    world.run();
  }

  /// What the link heard last, and forgets it: "rank 1, incarnation 1", or the
  /// reason of a refusal.
  std::string last(std::size_t link) {
    auto& log = logs[link];
    EXPECT_EQ(log.joined.size() + log.refused.size(), 1u);
    auto out = std::string{"nothing"};
    if (!log.joined.empty())
      out = "rank " + std::to_string(log.joined.back().rank) + ", incarnation "
          + std::to_string(log.joined.back().incarnation);
    else if (!log.refused.empty())
      out = (log.refused.back().for_good ? "for good: " : "for now: ")
          + log.refused.back().reason;
    log = {};
    return out;
  }

  const rank_door_state& door() {
    return test::state_of<rank_door_state>(uut);
  }

  options opts = one_of_three_here();
  scheduler_worker_port scheduler = world.spawn(fake_scheduler);
  rank_door_actor uut;
  std::array<heard, 3> logs;
  std::array<rank_link_port, 3> links;
};

TEST_F(RankDoor, SaysToWhomARankBelongsFromNowOn) {
  join(0, 1, 5);
  ASSERT_EQ(logs[0].joined.size(), 1u);
  const auto& answer = logs[0].joined.front();
  EXPECT_EQ(answer.rank, 1u);
  EXPECT_EQ(answer.incarnation, 1u);
  EXPECT_EQ(answer.epoch, epoch);
  EXPECT_EQ(answer.scheduler,
            caf::actor_cast<caf::strong_actor_ptr>(scheduler));
}

TEST_F(RankDoor, NumbersTheLivesOfEachRank) {
  join(0, 1, 5);
  EXPECT_EQ(last(0), "rank 1, incarnation 1");
  join(0, 2, 5);
  EXPECT_EQ(last(0), "rank 2, incarnation 1");
  join(0, 1, 5);
  EXPECT_EQ(last(0), "rank 1, incarnation 1") << "the same life";
  world.kill(links[0]);
  join(1, 1, 5);
  EXPECT_EQ(last(1), "rank 1, incarnation 1") << "over another connection";
  world.kill(links[1]);
  join(2, 1, 6);
  EXPECT_EQ(last(2), "rank 1, incarnation 2");
  join(2, 2, 6);
  EXPECT_EQ(last(2), "rank 2, incarnation 2");
}

TEST_F(RankDoor, KnowsALifeWhoseNumberIsZero) {
  join(0, 1, 0);
  EXPECT_EQ(last(0), "rank 1, incarnation 1");
}

TEST_F(RankDoor, LetsOneLifeInAtATime) {
  join(0, 1, 5);
  EXPECT_EQ(last(0), "rank 1, incarnation 1");
  join(1, 1, 6);
  EXPECT_EQ(last(1), "for now: rank 1 is taken by another process until its "
                     "loss is noticed");
  join(1, 2, 6);
  EXPECT_EQ(last(1), "rank 2, incarnation 1") << "another rank is free";
  world.kill(links[0]);
  join(1, 1, 6);
  EXPECT_EQ(last(1), "rank 1, incarnation 2");
  join(2, 1, 5);
  EXPECT_THAT(last(2), HasSubstr("for now: rank 1 is taken"));
}

// Its old connection is half open: only one side has noticed.
TEST_F(RankDoor, TheSameLifeNeedsNotWaitForItsOwnLoss) {
  join(0, 1, 5);
  (void)last(0);
  join(1, 1, 5);
  EXPECT_EQ(last(1), "rank 1, incarnation 1");
  world.kill(links[0]);
  join(2, 1, 6);
  EXPECT_THAT(last(2), HasSubstr("taken")) << "by the new connection";
}

// A process gives its rank another life (`worker::restart_rank`).
TEST_F(RankDoor, ALinkMayReplaceItsOwnLife) {
  join(0, 1, 5);
  (void)last(0);
  join(0, 1, 6);
  EXPECT_EQ(last(0), "rank 1, incarnation 2");
}

TEST_F(RankDoor, NamesBothVersionsToWhomSpeaksAnotherOne) {
  for (const auto other : {msg::protocol_version - 1, 4'000'000'000u}) {
    say(0, {other, "what the future holds"});
    const auto text = last(0);
    EXPECT_THAT(text, HasSubstr("for good: the scheduler speaks version "
                                + std::to_string(msg::protocol_version)
                                + " of the protocol and the rank version "
                                + std::to_string(other)));
  }
}

TEST_F(RankDoor, RefusesWhatCannotBecomeRight) {
  join(0, 0, 5);
  EXPECT_THAT(last(0), HasSubstr("for good: rank 0 lives in the scheduler's "));
  join(0, 3, 5);
  EXPECT_EQ(last(0), "for good: rank 3 does not exist: there are 3 ranks, "
                     "counted from 0");
  say(0, {msg::protocol_version, "nonsense"});
  EXPECT_THAT(last(0), HasSubstr("for good: what the rank says of itself is "
                                 "damaged"));
  auto theirs = opts;
  theirs.blocks_per_chunk = 4;
  say(0, {msg::protocol_version, encode_terms(terms_of(theirs, 1, 5))});
  EXPECT_THAT(last(0), HasSubstr("for good: options.blocks_per_chunk is 8 at "
                                 "the scheduler and 4 at the rank"));
  EXPECT_EQ(door().seats[1].incarnation, 0u) << "without effect";
}

TEST_F(RankDoor, RefusesEveryRankIfAllLiveHere) {
  opts.workers.clear();
  uut = world.spawn(rank_door, rank_door_config{opts, scheduler, epoch});
  join(0, 1, 5);
  EXPECT_THAT(last(0), HasSubstr("for good: rank 1 lives in the scheduler's"));
}

TEST_F(RankDoor, RemembersNothingOfWhoIsRefused) {
  join(0, 1, 5);
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto link = world.spawn(fake_link, &logs[1]);
    for (const auto rank : {0u, 1u, 4u}) {
      world.send_as(link, uut,
                    msg::join{msg::protocol_version,
                              encode_terms(terms_of(opts, rank, i + 100))});
      world.run();
    }
    world.kill(link);
  }
  EXPECT_EQ(logs[1].refused.size(), 300u);
  EXPECT_THAT(logs[1].joined, IsEmpty());
  EXPECT_EQ(door().links.size(), 1u);
  EXPECT_EQ(door().seats[1].incarnation, 1u);
}

TEST_F(RankDoor, WatchesALinkOnceHoweverOftenItAsks) {
  for (std::uint64_t life = 0; life < 100; ++life)
    join(0, 1, life);
  EXPECT_EQ(door().links.size(), 1u);
  EXPECT_EQ(door().seats[1].incarnation, 100u);
  world.kill(links[0]);
  EXPECT_THAT(door().links, IsEmpty());
}

TEST_F(RankDoor, LivesThroughWhatNobodyOrTheWrongOneSays) {
  world.send(
    uut, msg::join{msg::protocol_version, encode_terms(terms_of(opts, 1, 9))});
  world.send_as(links[1], caf::actor_cast<rank_link_port>(uut),
                msg::join_refused{});
  world.send(caf::actor_cast<caf::actor>(uut),
             caf::make_error(caf::sec::unexpected_message));
  world.run();
  join(0, 1, 5);
  EXPECT_EQ(last(0), "rank 1, incarnation 1");
}

TEST_F(RankDoor, EndsWithTheScheduler) {
  world.kill(scheduler);
  join(0, 1, 5);
  EXPECT_THAT(logs[0].joined, IsEmpty());
  EXPECT_THAT(logs[0].refused, IsEmpty());
}

TEST(RandomLife, IsAnotherOneEachTime) {
  EXPECT_NE(random_life(), random_life());
}

} // namespace
} // namespace kvtide
