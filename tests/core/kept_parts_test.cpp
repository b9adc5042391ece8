// SPDX-License-Identifier: Apache-2.0

#include "core/kept_parts.hpp"

#include <gtest/gtest.h>

namespace kvtide::core {
namespace {

TEST(KeptParts, TakesEachSlotOnce) {
  auto uut = kept_parts{};
  EXPECT_TRUE(uut.add({1, {7, 8}}, 3));
  EXPECT_TRUE(uut.add({2, {7, 8}}, 3));
  EXPECT_FALSE(uut.add({2, {7, 8}}, 3)) << "said before";
  EXPECT_FALSE(uut.add({3, {7, 8}}, 3)) << "there is no such slot";
  EXPECT_EQ(uut.take().size(), 2u);
  EXPECT_TRUE(uut.take().empty());
}

TEST(KeptParts, KnowsNothingOfASlotThatWasNamedDifferently) {
  auto uut = kept_parts{};
  EXPECT_TRUE(uut.add({0, {1, 1}}, 2));
  EXPECT_TRUE(uut.add({1, {1, 2}}, 2));
  EXPECT_FALSE(uut.add({0, {1, 2}}, 2));
  EXPECT_FALSE(uut.add({0, {1, 1}}, 2)) << "whichever comes last";
  const auto rest = uut.take();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].slot, 1u);
  EXPECT_EQ(rest[0].digest, (wide_digest{1, 2}));
}

} // namespace
} // namespace kvtide::core
