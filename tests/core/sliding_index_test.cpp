// SPDX-License-Identifier: Apache-2.0

#include "core/sliding_index.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace kvtide::core {
namespace {

using found = std::set<std::tuple<request_id, group_id, std::size_t>>;

found places(const sliding_index& index, block_id block) {
  auto out = found{};
  if (const auto* list = index.places(block); list != nullptr)
    for (const auto& x : *list)
      out.emplace(x.request, x.group, x.position);
  return out;
}

TEST(SlidingIndex, FindsEveryPlaceOfABlock) {
  auto index = sliding_index{};
  index.add(7, {1, 0, 3});
  index.add(7, {2, 1, 0});
  index.add(8, {1, 0, 4});
  EXPECT_EQ(places(index, 7), (found{{1, 0, 3}, {2, 1, 0}}));
  EXPECT_EQ(places(index, 8), (found{{1, 0, 4}}));
  EXPECT_EQ(places(index, 9), found{});
  EXPECT_EQ(index.size(), 3u);
}

TEST(SlidingIndex, IgnoresHoles) {
  auto index = sliding_index{};
  index.add(no_block, {1, 0, 0});
  EXPECT_EQ(index.size(), 0u);
  EXPECT_EQ(index.places(no_block), nullptr);
}

TEST(SlidingIndex, RemovesOnePlaceAndLeavesTheOthers) {
  auto index = sliding_index{};
  index.add(7, {1, 0, 3});
  index.add(7, {1, 1, 3});
  index.remove(7, 1, 0, 3);
  EXPECT_EQ(places(index, 7), (found{{1, 1, 3}}));
  index.remove(7, 1, 1, 3);
  EXPECT_EQ(index.places(7), nullptr);
  EXPECT_EQ(index.size(), 0u);
}

TEST(SlidingIndex, IgnoresTheRemovalOfWhatIsNotThere) {
  auto index = sliding_index{};
  index.add(7, {1, 0, 3});
  index.remove(7, 1, 0, 4);
  index.remove(7, 1, 1, 3);
  index.remove(7, 2, 0, 3);
  index.remove(8, 1, 0, 3);
  EXPECT_EQ(index.size(), 1u);
}

} // namespace
} // namespace kvtide::core
