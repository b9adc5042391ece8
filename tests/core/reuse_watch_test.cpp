// SPDX-License-Identifier: Apache-2.0

#include "core/reuse_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using ::testing::ElementsAre;
using ::testing::Pointee;
using ::testing::UnorderedElementsAre;

namespace kvtide::core {
namespace {

TEST(ReuseWatch, NamesAllJobsThatReadABlock) {
  auto watch = reuse_watch{};
  watch.add(5, 1);
  watch.add(5, 2);
  watch.add(6, 2);
  EXPECT_THAT(watch.jobs(5), Pointee(UnorderedElementsAre(1u, 2u)));
  EXPECT_THAT(watch.jobs(6), Pointee(ElementsAre(2u)));
  EXPECT_EQ(watch.jobs(7), nullptr);
  EXPECT_THAT(watch.blocks(), ElementsAre(5u, 6u));
}

// FEN-03
TEST(ReuseWatch, TakesABlockThatAJobNamesTwiceAsOne) {
  auto watch = reuse_watch{};
  watch.add(5, 1);
  watch.add(5, 1);
  EXPECT_THAT(watch.jobs(5), Pointee(ElementsAre(1u)));
  watch.remove(5, 1);
  watch.remove(5, 1);
  EXPECT_EQ(watch.jobs(5), nullptr);
  EXPECT_EQ(watch.size(), 0u);
}

TEST(ReuseWatch, IgnoresTheRemovalOfWhatIsNotThere) {
  auto watch = reuse_watch{};
  watch.remove(1, 1);
  watch.add(1, 1);
  watch.remove(1, 2);
  watch.remove(2, 1);
  EXPECT_THAT(watch.jobs(1), Pointee(ElementsAre(1u)));
}

TEST(ReuseWatch, ForgetsEverything) {
  auto watch = reuse_watch{};
  watch.add(1, 1);
  watch.clear();
  EXPECT_EQ(watch.size(), 0u);
  EXPECT_EQ(watch.jobs(1), nullptr);
}

} // namespace
} // namespace kvtide::core
