// SPDX-License-Identifier: Apache-2.0

#include "examples/epoll_blocks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

namespace kvtide {
namespace {

constexpr request_id R = 'R';

class EpollBlocks : public ::testing::Test {
protected:
  using block_list = epoll_loop::block_book::block_list;

  /// A request's load of the first two blocks fails, and a copy is late.
  static load_failed late_load(block_list blocks) {
    auto out = load_failed{};
    out.request = R;
    out.blocks = std::move(blocks);
    out.use_new_blocks = true;
    return out;
  }

  static finish_answer answer(block_list held) {
    return {0, R, std::move(held)};
  }

  /// Takes all that is free.
  block_list drain() {
    auto out = block_list{};
    uut.fill(out, 100);
    return out;
  }

  epoll_loop::block_book uut{5};
};

TEST_F(EpollBlocks, GivesWhatIsFreeUntilThereIsEnough) {
  auto mine = block_list{};
  EXPECT_TRUE(uut.fill(mine, 3));
  EXPECT_THAT(mine, ElementsAre(1, 2, 3));
  auto other = block_list{};
  EXPECT_FALSE(uut.fill(other, 3));
  EXPECT_THAT(other, ElementsAre(4, 5));
  EXPECT_EQ(uut.free(), 0u);
}

TEST_F(EpollBlocks, FreesWithTheAnswerWhatIsNotHeld) {
  auto mine = block_list{};
  uut.fill(mine, 3);
  uut.end(R, mine);
  EXPECT_EQ(uut.free(), 2u);
  uut.answered(answer({2}));
  EXPECT_EQ(uut.free(), 4u);
  uut.released({R, {2}});
  EXPECT_THAT(drain(), UnorderedElementsAre(1, 2, 3, 4, 5));
}

TEST_F(EpollBlocks, PutsOthersInThePlacesOfLostOnes) {
  auto mine = block_list{};
  uut.fill(mine, 3);
  EXPECT_TRUE(uut.lose(late_load({1, 2}), &mine));
  EXPECT_THAT(mine, ElementsAre(4, 5, 3));
  uut.end(R, mine);
  uut.answered(answer({1, 2}));
  uut.released({R, {1, 2}});
  EXPECT_THAT(drain(), UnorderedElementsAre(1, 2, 3, 4, 5));
}

TEST_F(EpollBlocks, FreesLostOnesOnceIfTheRequestHasEndedBefore) {
  auto mine = block_list{};
  uut.fill(mine, 3);
  uut.end(R, mine);
  EXPECT_TRUE(uut.lose(late_load({1, 2}), nullptr));
  uut.released({R, {1, 2}}); // So the answer holds nothing any more.
  uut.answered(answer({}));
  EXPECT_THAT(drain(), UnorderedElementsAre(1, 2, 3, 4, 5));
}

TEST_F(EpollBlocks, FreesLostOnesOnceIfTheRequestEndsForWantOfOthers) {
  auto mine = block_list{};
  uut.fill(mine, 4);
  EXPECT_FALSE(uut.lose(late_load({1, 2}), &mine));
  EXPECT_THAT(mine, ElementsAre(3, 4));
  uut.end(R, mine);
  uut.released({R, {1, 2}});
  uut.answered(answer({}));
  EXPECT_THAT(drain(), UnorderedElementsAre(1, 2, 3, 4, 5));
}

TEST_F(EpollBlocks, KeepsLostOnesUntilTheyAreReleasedIfTheAnswerIsFirst) {
  auto mine = block_list{};
  uut.fill(mine, 3);
  uut.end(R, mine);
  uut.lose(late_load({1, 2}), nullptr);
  uut.answered(answer({1, 2}));
  EXPECT_EQ(uut.free(), 3u);
  uut.released({R, {1, 2}});
  EXPECT_THAT(drain(), UnorderedElementsAre(1, 2, 3, 4, 5));
}

TEST_F(EpollBlocks, TakesAnAnswerToNothing) {
  uut.answered(answer({}));
  EXPECT_EQ(uut.free(), 5u);
}

} // namespace
} // namespace kvtide
