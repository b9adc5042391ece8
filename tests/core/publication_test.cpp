// SPDX-License-Identifier: Apache-2.0

#include "core/publication.hpp"
#include "core/replica_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>
#include <set>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

namespace kvtide::core {
namespace {

publication::config small() {
  return {4, 2, 8};
}

class Publication : public ::testing::Test {
protected:
  publication uut{small()};

  void stored(std::uint64_t digest) {
    const auto one = key_change{digest, true};
    uut.add({&one, 1});
  }

  void removed(std::uint64_t digest) {
    const auto one = key_change{digest, false};
    uut.add({&one, 1});
  }

  /// Starts with a pool that has nothing.
  void start_empty() {
    uut.start_over();
    (void)uut.wanted_part();
    uut.add_part(0, 16, true, {});
    const auto first = uut.next();
    ASSERT_TRUE(first && first->starts_over);
    uut.answered(first->sequence, false);
  }
};

TEST_F(Publication, SaysNothingBeforeTheDirectoryIsThere) {
  stored(1);
  EXPECT_FALSE(uut.next());
  EXPECT_FALSE(uut.wanted_part());
}

TEST_F(Publication, StartsWithEverythingThatThePoolHas) {
  uut.start_over();
  EXPECT_EQ(uut.wanted_part(), 0u);
  EXPECT_FALSE(uut.wanted_part());
  uut.add_part(0, 8, false, std::vector<std::uint64_t>{1, 2});
  const auto first = uut.next();
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->starts_over);
  EXPECT_TRUE(first->more);
  EXPECT_THAT(first->stored, UnorderedElementsAre(1, 2));
  uut.answered(1, false);
  EXPECT_EQ(uut.wanted_part(), 8u);
  uut.add_part(8, 16, true, {});
  const auto end = uut.next();
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->starts_over);
  EXPECT_FALSE(end->more);
  EXPECT_THAT(end->stored, IsEmpty());
  uut.answered(2, false);
  EXPECT_FALSE(uut.next());
}

TEST_F(Publication, OnlyTheLastWordOnAKeyIsSent) {
  start_empty();
  stored(1);
  stored(2);
  removed(1);
  const auto said = uut.next();
  ASSERT_TRUE(said);
  EXPECT_THAT(said->stored, ElementsAre(2));
  EXPECT_THAT(said->removed, ElementsAre(1));
}

TEST_F(Publication, FewKeysWaitWhileSomethingIsUnanswered) {
  start_empty();
  stored(1);
  EXPECT_TRUE(uut.next());
  stored(2);
  EXPECT_FALSE(uut.next());
  uut.answered(2, false);
  EXPECT_TRUE(uut.next());
}

TEST_F(Publication, NoMoreThanAWindowIsUnanswered) {
  start_empty();
  for (std::uint64_t i = 0; i < 8; ++i)
    stored(i);
  EXPECT_TRUE(uut.next());
  EXPECT_TRUE(uut.next());
  for (std::uint64_t i = 8; i < 12; ++i)
    stored(i);
  EXPECT_FALSE(uut.next());
  EXPECT_TRUE(uut.waits());
}

TEST_F(Publication, TooMuchThatWaitsIsDroppedAndReadAgain) {
  start_empty();
  for (std::uint64_t i = 0; i < 9; ++i)
    stored(i);
  EXPECT_EQ(uut.overflows(), 1u);
  const auto again = uut.next();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->starts_over);
  EXPECT_EQ(uut.wanted_part(), 0u);
}

TEST_F(Publication, ThePoolIsNotReadFasterThanItIsSent) {
  uut.start_over();
  EXPECT_TRUE(uut.wanted_part());
  uut.add_part(0, 8, false, std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_FALSE(uut.wanted_part());
  EXPECT_TRUE(uut.next());
  EXPECT_FALSE(uut.wanted_part());
  EXPECT_TRUE(uut.next());
  EXPECT_TRUE(uut.wanted_part());
}

TEST_F(Publication, ManyAnswersThatAskForEverythingStartItOnce) {
  start_empty();
  for (std::uint64_t i = 0; i < 8; ++i)
    stored(i);
  (void)uut.next();
  (void)uut.next();
  uut.answered(2, true);
  uut.answered(3, true);
  const auto again = uut.next();
  ASSERT_TRUE(again && again->starts_over);
  uut.answered(3, true); // Of before.
  EXPECT_EQ(uut.wanted_part(), 0u);
  uut.add_part(0, 16, true, {});
  uut.answered(again->sequence, false);
  const auto end = uut.next();
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->starts_over);
}

// -- against a directory, on a path that loses, repeats and swaps -------------

struct answer {
  std::uint64_t sequence;
  bool start_over;
};

/// A replica with a pool, a directory, and two bad lines between them.
class bad_line {
public:
  bad_line() {
    directory.join("a", 1, seat);
    said.start_over();
  }

  void change() {
    const auto slot = *rc::gen::inRange<std::size_t>(0, slots.size());
    const auto digest = *rc::gen::inRange<std::uint64_t>(1, 30);
    auto& place = slots[slot];
    if (place != 0) {
      tell(place, false);
      place = 0;
    } else if (std::count(slots.begin(), slots.end(), digest) == 0) {
      place = digest;
      tell(digest, true);
    }
  }

  void work() {
    if (const auto first = said.wanted_part()) {
      auto found = std::vector<std::uint64_t>{};
      const auto next = std::min<std::size_t>(*first + 3, slots.size());
      for (auto at = std::size_t{*first}; at < next; ++at)
        if (slots[at] != 0)
          found.push_back(slots[at]);
      said.add_part(*first, static_cast<slot_id>(next), next == slots.size(),
                    found);
    }
    while (auto one = said.next())
      there.push_back(std::move(*one));
  }

  void deliver(std::size_t at) {
    const auto one = there[at];
    there.erase(there.begin() + static_cast<std::ptrdiff_t>(at));
    const auto got = directory.apply(
      seat, 1,
      {one.sequence, one.starts_over, one.more, one.removed, one.stored});
    back.push_back({one.sequence, got == replica_directory::verdict::gap});
  }

  void answer_one() {
    const auto one = back.front();
    back.pop_front();
    said.answered(one.sequence, one.start_over);
  }

  /// What an actor does when no answer comes.
  void give_up() {
    said.pause();
    directory.join("a", 1, seat);
    said.start_over();
  }

  void settle() {
    for (auto i = 0; i < 1'000; ++i) {
      work();
      if (!there.empty())
        deliver(0);
      if (!back.empty())
        answer_one();
    }
    if (said.waits() || !directory.is_whole(seat)) // Something was lost.
      give_up();
    for (auto i = 0; i < 1'000; ++i) {
      work();
      if (!there.empty())
        deliver(0);
      if (!back.empty())
        answer_one();
    }
  }

  std::vector<std::uint64_t> slots = std::vector<std::uint64_t>(10);
  publication said{small()};
  replica_directory directory{{}};
  replica_directory::seat_id seat = 0;
  std::deque<publication::batch> there;
  std::deque<answer> back;

private:
  void tell(std::uint64_t digest, bool stored) {
    const auto one = key_change{digest, stored};
    said.add({&one, 1});
  }
};

RC_GTEST_PROP(PublicationProperty, ADirectoryLearnsTheTruthOverABadLine, ()) {
  auto world = bad_line{};
  for (auto i = *rc::gen::inRange(0, 300); i > 0; --i) {
    switch (*rc::gen::inRange(0, 10)) {
      case 0: // Loses one.
        if (!world.there.empty())
          world.there.pop_front();
        break;
      case 1: // Repeats one.
        if (!world.there.empty())
          world.there.push_back(world.there.front());
        break;
      case 2: // The last one overtakes.
        if (!world.there.empty())
          world.deliver(world.there.size() - 1);
        break;
      case 3: // Loses an answer.
        if (!world.back.empty())
          world.back.pop_front();
        break;
      case 4:
        if (!world.back.empty())
          world.answer_one();
        break;
      case 5:
        if (!world.there.empty())
          world.deliver(0);
        break;
      case 6:
        world.work();
        break;
      default:
        world.change();
    }
    RC_ASSERT(world.said.overflows() < 100u);
  }
  world.settle();
  auto has = std::set<std::uint64_t>{world.slots.begin(), world.slots.end()};
  has.erase(0);
  RC_ASSERT(world.directory.is_whole(world.seat));
  RC_ASSERT(world.directory.keys_of(world.seat) == has.size());
  for (const auto digest : has) {
    const auto run = chunk_run{1, {digest}};
    RC_ASSERT(world.directory.holdings({&run, 1}).front().tokens == 1);
  }
}

} // namespace
} // namespace kvtide::core
