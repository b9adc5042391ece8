// SPDX-License-Identifier: Apache-2.0

#include "core/replica_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

using ::testing::Each;

namespace kvtide::core {
namespace {

using digests = std::vector<std::uint64_t>;
using verdict = replica_directory::verdict;
using welcome = replica_directory::welcome;

class ReplicaDirectory : public ::testing::Test {
protected:
  replica_directory uut{{}};

  replica_directory::seat_id seat(const std::string& name,
                                  std::uint64_t incarnation = 1) {
    auto out = replica_directory::seat_id{};
    EXPECT_EQ(uut.join(name, incarnation, out), welcome::seated);
    return out;
  }

  /// A replica that has said all it has.
  replica_directory::seat_id seat_with(const std::string& name,
                                       const digests& stored) {
    const auto out = seat(name);
    EXPECT_EQ(uut.apply(out, 1, {1, true, false, {}, stored}),
              verdict::applied);
    return out;
  }

  verdict store(replica_directory::seat_id id, std::uint64_t sequence,
                const digests& stored) {
    return uut.apply(id, 1, {sequence, false, false, {}, stored});
  }

  verdict remove(replica_directory::seat_id id, std::uint64_t sequence,
                 const digests& removed) {
    return uut.apply(id, 1, {sequence, false, false, removed, {}});
  }

  token_count tokens(replica_directory::seat_id id, const digests& prompt) {
    const auto run = chunk_run{10, prompt};
    for (const auto& one : uut.holdings({&run, 1}))
      if (one.seat == id)
        return one.tokens;
    return -1;
  }

  std::string best(const digests& prompt) {
    const auto run = chunk_run{10, prompt};
    const auto found = uut.choose(uut.holdings({&run, 1}));
    return found ? uut.name_of(found->seat) : "nobody";
  }
};

TEST_F(ReplicaDirectory, WithoutReplicasThereIsNobodyToChoose) {
  EXPECT_EQ(best({1, 2}), "nobody");
}

TEST_F(ReplicaDirectory, TheLongestLeadingRunWins) {
  const auto a = seat_with("a", {1, 2, 3});
  const auto b = seat_with("b", {1, 3, 4, 5});
  EXPECT_EQ(tokens(a, {1, 2, 3, 4}), 30);
  EXPECT_EQ(tokens(b, {1, 2, 3, 4}), 10);
  EXPECT_EQ(best({1, 2, 3, 4}), "a");
  EXPECT_EQ(best({1, 3, 4}), "b");
}

TEST_F(ReplicaDirectory, WhoWasChosenLongestAgoWinsATie) {
  seat_with("a", {1});
  seat_with("b", {1});
  seat_with("c", {});
  EXPECT_EQ(best({7}), "a");
  EXPECT_EQ(best({7}), "b");
  EXPECT_EQ(best({7}), "c");
  EXPECT_EQ(best({1}), "a");
  EXPECT_EQ(best({1}), "b");
  EXPECT_EQ(best({7}), "c");
}

TEST_F(ReplicaDirectory, AReplicaThatJoinsLateIsNotGivenEverythingAtOnce) {
  seat_with("a", {});
  seat_with("b", {});
  for (auto i = 0; i < 10; ++i)
    best({7});
  seat_with("c", {});
  auto counts = std::map<std::string, int>{};
  for (auto i = 0; i < 9; ++i)
    ++counts[best({7})];
  EXPECT_EQ(counts["c"], 3);
}

TEST_F(ReplicaDirectory, AHitNeedsEveryGroup) {
  const auto a = seat_with("a", {1, 2, 3, 11});
  const auto runs = std::vector<chunk_run>{{10, {1, 2, 3}}, {20, {11, 12}}};
  const auto all = uut.holdings(runs);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all.front().seat, a);
  EXPECT_EQ(all.front().tokens, 20);
  EXPECT_EQ(all.front().chunks, 3u);
}

TEST_F(ReplicaDirectory, WhatWasRemovedIsNotHeldAnyMore) {
  const auto a = seat_with("a", {1, 2});
  EXPECT_EQ(remove(a, 2, {2}), verdict::applied);
  EXPECT_EQ(tokens(a, {1, 2}), 10);
  EXPECT_EQ(uut.keys(), 1u);
}

TEST_F(ReplicaDirectory, NothingIsTakenBeforeAReplicaStartsOver) {
  const auto a = seat("a");
  EXPECT_EQ(store(a, 1, {1}), verdict::gap);
  EXPECT_EQ(tokens(a, {1}), 0);
  EXPECT_FALSE(uut.is_whole(a));
}

TEST_F(ReplicaDirectory, AMissingBatchIsNoticedAndMendedByStartingOver) {
  const auto a = seat_with("a", {1, 2});
  EXPECT_EQ(store(a, 3, {3}), verdict::gap);
  EXPECT_EQ(store(a, 4, {4}), verdict::gap);
  EXPECT_FALSE(uut.is_whole(a));
  EXPECT_EQ(uut.apply(a, 1, {5, true, true, {}, digests{1}}), verdict::applied);
  EXPECT_FALSE(uut.is_whole(a));
  EXPECT_EQ(uut.apply(a, 1, {6, false, false, {}, digests{4}}),
            verdict::applied);
  EXPECT_TRUE(uut.is_whole(a));
  EXPECT_EQ(tokens(a, {1, 2}), 10);
  EXPECT_EQ(uut.keys(), 2u);
}

TEST_F(ReplicaDirectory, ARepeatedBatchHasNoEffect) {
  const auto a = seat_with("a", {1});
  EXPECT_EQ(remove(a, 2, {1}), verdict::applied);
  EXPECT_EQ(store(a, 1, {1}), verdict::repeated);
  EXPECT_EQ(store(a, 2, {1}), verdict::repeated);
  EXPECT_EQ(uut.keys(), 0u);
}

TEST_F(ReplicaDirectory, ALaterLifeReplacesAnEarlierOne) {
  const auto a = seat_with("a", {1});
  const auto again = seat("a", 2);
  EXPECT_EQ(again, a);
  EXPECT_EQ(uut.keys(), 0u);
  EXPECT_EQ(uut.apply(a, 1, {2, true, false, {}, digests{1}}), verdict::older);
  auto seat = replica_directory::seat_id{};
  EXPECT_EQ(uut.join("a", 1, seat), welcome::older);
  EXPECT_EQ(uut.keys(), 0u);
}

TEST_F(ReplicaDirectory, WhoLeavesIsForgotten) {
  const auto a = seat_with("a", {1, 2});
  seat_with("b", {2, 3});
  uut.leave(a);
  EXPECT_EQ(uut.keys(), 2u);
  EXPECT_EQ(uut.replicas(), 1u);
  EXPECT_EQ(best({1}), "b");
  EXPECT_EQ(seat_with("c", {}), a);
  EXPECT_EQ(tokens(a, {1}), 0);
}

TEST_F(ReplicaDirectory, ThereAreSeatsForSixtyFour) {
  for (auto i = 0; i < 64; ++i)
    seat_with("replica " + std::to_string(i), {1});
  auto seat = replica_directory::seat_id{};
  EXPECT_EQ(uut.join("one more", 1, seat), welcome::full);
  EXPECT_EQ(tokens(63, {1}), 10);
  EXPECT_EQ(uut.keys(), 1u);
}

TEST_F(ReplicaDirectory, WhatDoesNotFitIsLeftOutUntilThereIsRoom) {
  auto small = replica_directory{{8}};
  auto a = replica_directory::seat_id{};
  auto b = replica_directory::seat_id{};
  small.join("a", 1, a);
  small.join("b", 1, b);
  small.apply(a, 1, {1, true, false, {}, digests{1, 2, 3, 4, 5}});
  small.apply(b, 1, {1, true, false, {}, digests{1, 11, 12, 13, 14}});
  EXPECT_EQ(small.keys(), 8u);
  EXPECT_TRUE(small.is_whole(a));
  EXPECT_FALSE(small.is_whole(b));
  EXPECT_FALSE(small.could_be_whole(b));
  small.apply(a, 1, {2, false, false, digests{2}, {}});
  EXPECT_FALSE(small.could_be_whole(b));
  small.apply(a, 1, {3, false, false, digests{3}, {}});
  EXPECT_TRUE(small.could_be_whole(b));
  small.apply(b, 1, {2, true, false, {}, digests{1, 11, 12, 13, 14}});
  EXPECT_TRUE(small.is_whole(b));
  EXPECT_FALSE(small.could_be_whole(b));
}

// -- against a model ----------------------------------------------------------

struct model_replica {
  std::set<std::uint64_t> keys;
  std::uint64_t sequence = 0;
};

RC_GTEST_PROP(ReplicaDirectoryProperty, HoldsWhatAPlainModelHolds, ()) {
  auto uut = replica_directory{{}};
  auto model = std::map<replica_directory::seat_id, model_replica>{};
  const auto names = std::vector<std::string>{"a", "b", "c"};
  const auto digest = [] { return *rc::gen::inRange<std::uint64_t>(0, 12); };
  for (auto i = *rc::gen::inRange(1, 80); i > 0; --i) {
    auto seat = replica_directory::seat_id{};
    const auto& name = *rc::gen::elementOf(names);
    switch (*rc::gen::inRange(0, 8)) {
      case 0:
        RC_ASSERT(uut.join(name, 1, seat) == welcome::seated);
        model[seat] = {};
        uut.apply(seat, 1, {++model[seat].sequence, true, false, {}, {}});
        break;
      case 1:
        if (!model.empty()) {
          seat = model.begin()->first;
          uut.leave(seat);
          model.erase(seat);
        }
        break;
      default:
        for (auto& [who, has] : model) {
          auto stored = digests{digest()};
          auto removed = digests{digest()};
          if (removed == stored)
            removed.clear();
          for (const auto one : removed)
            has.keys.erase(one);
          has.keys.insert(stored.begin(), stored.end());
          const auto got = uut.apply(
            who, 1, {++has.sequence, false, false, removed, stored});
          RC_ASSERT(got == verdict::applied);
        }
    }
    auto different = std::set<std::uint64_t>{};
    auto prompt = digests{};
    for (auto k = 0; k < 6; ++k)
      prompt.push_back(digest());
    const auto run = chunk_run{16, prompt};
    const auto all = uut.holdings({&run, 1});
    RC_ASSERT(all.size() == model.size());
    for (const auto& one : all) {
      const auto& has = model[one.seat].keys;
      different.insert(has.begin(), has.end());
      auto length = std::size_t{0};
      while (length < prompt.size() && has.count(prompt[length]) > 0)
        ++length;
      RC_ASSERT(one.chunks == length);
      RC_ASSERT(one.tokens == static_cast<token_count>(16 * length));
      RC_ASSERT(uut.keys_of(one.seat) == has.size());
    }
    RC_ASSERT(uut.keys() == different.size());
  }
}

} // namespace
} // namespace kvtide::core
