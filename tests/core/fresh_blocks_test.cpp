// SPDX-License-Identifier: Apache-2.0

#include "core/fresh_blocks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

namespace kvtide::core {
namespace {

TEST(FreshBlocks, KnowWhatWasAddedUntilTheyAreCleared) {
  auto uut = fresh_blocks{};
  EXPECT_FALSE(uut.contains(1));
  uut.add(9);
  uut.add(4);
  EXPECT_TRUE(uut.contains(9));
  EXPECT_TRUE(uut.contains(4));
  EXPECT_FALSE(uut.contains(5));
  uut.add(5); // Behind a question.
  EXPECT_TRUE(uut.contains(5));
  EXPECT_TRUE(uut.contains(9));
  EXPECT_THAT(uut.all(), UnorderedElementsAre(4, 5, 9));
  uut.clear();
  EXPECT_FALSE(uut.contains(4));
  EXPECT_THAT(uut.all(), IsEmpty());
}

} // namespace
} // namespace kvtide::core
