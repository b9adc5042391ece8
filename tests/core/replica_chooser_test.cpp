// SPDX-License-Identifier: Apache-2.0

#include "core/replica_chooser.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace kvtide::core {
namespace {

class ReplicaChooser : public ::testing::Test {
protected:
  /// @param tokens what "a", "b" and so on have of the prompt
  std::string choose(const std::vector<token_count>& tokens,
                     const std::string& most, token_count prompt = 800) {
    auto all = std::vector<replica_holding>{};
    for (const auto x : tokens)
      all.push_back(
        {std::string(1, static_cast<char>('a' + all.size())), x, 0, true});
    const auto* out = uut.choose(all, most, prompt);
    return out == nullptr ? "" : out->replica;
  }

  replica_chooser uut{0.125};
};

TEST_F(ReplicaChooser, NamesNobodyIfNobodyTakesPart) {
  EXPECT_EQ(choose({}, ""), "");
  EXPECT_EQ(choose({}, "a"), "");
}

TEST_F(ReplicaChooser, FollowsWhoHasEnough) {
  for (auto i = 0; i < 3; ++i)
    EXPECT_EQ(choose({0, 100}, "b"), "b");
}

TEST_F(ReplicaChooser, GivesWhatIsNotWorthFollowingToWhoWasGivenLeast) {
  EXPECT_EQ(choose({0, 99, 0}, "b"), "b") << "nobody was given anything";
  EXPECT_EQ(choose({0, 99, 0}, "b"), "a");
  EXPECT_EQ(choose({0, 99, 0}, "b"), "c");
  EXPECT_EQ(choose({0, 99, 0}, "b"), "b") << "it had less to compute";
}

TEST_F(ReplicaChooser, CountsWhatHasToBeComputedAlone) {
  EXPECT_EQ(choose({0, 0}, "a", 100), "a");
  // All of it is there already.
  for (auto i = 0; i < 3; ++i)
    EXPECT_EQ(choose({0, 800}, "b"), "b");
  EXPECT_EQ(choose({0, 0}, "a", 100), "b");
}

TEST_F(ReplicaChooser, AsksTheDirectoryWhereTwoAreEqual) {
  EXPECT_EQ(choose({0, 0, 0}, "c", 0), "c");
  EXPECT_EQ(choose({0, 0, 0}, "b", 0), "b");
}

TEST_F(ReplicaChooser, GivesALatecomerNoMoreThanOthers) {
  for (auto i = 0; i < 4; ++i)
    choose({0, 0}, "a");
  auto given = std::map<std::string, int>{};
  for (auto i = 0; i < 6; ++i)
    given[choose({0, 0, 0}, "a")] += 1;
  EXPECT_EQ(given, (std::map<std::string, int>{{"a", 2}, {"b", 2}, {"c", 2}}));
}

TEST_F(ReplicaChooser, ForgetsWhoIsGone) {
  EXPECT_EQ(choose({0, 0}, "a"), "a");
  EXPECT_EQ(choose({0}, "a"), "a");
  // "b" is new, so it was given as much; else this were its turn.
  EXPECT_EQ(choose({0, 0}, "a"), "a");
  EXPECT_EQ(choose({0, 0}, "a"), "b");
}

TEST_F(ReplicaChooser, FollowsAlwaysIfToldSo) {
  uut = replica_chooser{0};
  for (auto i = 0; i < 3; ++i)
    EXPECT_EQ(choose({0, 1}, "b"), "b");
}

TEST_F(ReplicaChooser, BelievesNoPeerThatHasMoreThanThereIs) {
  EXPECT_EQ(choose({-1'000'000'000'000, 2'000'000'000'000}, "b"), "b");
  EXPECT_EQ(choose({0, 0}, "a"), "a") << "both were given nothing";
  EXPECT_EQ(choose({0, 0}, "x"), "b") << "nobody has that name";
}

} // namespace
} // namespace kvtide::core
