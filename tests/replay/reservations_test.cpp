// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/reservations.hpp"

#include <gtest/gtest.h>

namespace kvtide::replay {
namespace {

using blocks = std::vector<block_id>;

TEST(Reservations, EndWhenTheyAreReleased) {
  auto uut = reservations{};
  EXPECT_EQ(uut.add(1, {3, 4}), 2u);
  EXPECT_EQ(uut.add(2, {5}), 1u);
  EXPECT_EQ(uut.size(), 3u);
  EXPECT_EQ(uut.remove(1, {4}), blocks{4});
  EXPECT_EQ(uut.remove(1, {3}), blocks{3});
  EXPECT_EQ(uut.remove(2, {5}), blocks{5});
  EXPECT_EQ(uut.size(), 0u);
}

// A load fails while it runs, and its request ends before the copies do.
TEST(Reservations, CountABlockOnceHoweverOftenItIsNamed) {
  auto uut = reservations{};
  EXPECT_EQ(uut.add(1, {3, 4}), 2u);
  EXPECT_EQ(uut.add(1, {3, 4, 6}), 1u);
  EXPECT_EQ(uut.size(), 3u);
  EXPECT_EQ(uut.remove(1, {3, 4, 6}), (blocks{3, 4, 6}));
  EXPECT_EQ(uut.size(), 0u);
}

TEST(Reservations, LeaveOutWhatWasNotReserved) {
  auto uut = reservations{};
  EXPECT_EQ(uut.add(1, {}), 0u);
  EXPECT_EQ(uut.add(1, {3}), 1u);
  EXPECT_TRUE(uut.remove(2, {3}).empty());
  EXPECT_EQ(uut.remove(1, {2, 3}), blocks{3});
  EXPECT_TRUE(uut.remove(1, {3}).empty());
  EXPECT_EQ(uut.size(), 0u);
}

} // namespace
} // namespace kvtide::replay
