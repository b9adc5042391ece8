// SPDX-License-Identifier: Apache-2.0

#include "core/block_tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::core {
namespace {

using ids = std::vector<block_id>;

TEST(BlockTables, GrowGroupByGroup) {
  auto uut = block_tables{2};
  uut.append(1, ids{11});
  uut.append(0, ids{1, 2});
  uut.append(1, ids{12});
  EXPECT_THAT(uut.view(0).blocks, ElementsAre(1u, 2u));
  EXPECT_THAT(uut.view(1).blocks, ElementsAre(11u, 12u));
}

TEST(BlockTables, AreEmptiedBeforeAnUpdateAppends) {
  auto uut = block_tables{1};
  uut.append(0, ids{1, 2, 3});
  uut.apply({true, {{7, 8, 9}}, {{0, 1}}});
  EXPECT_THAT(uut.view(0).blocks, ElementsAre(7u, no_block, 9u));
}

TEST(BlockTables, KeepTheirLengthWhenTheyForget) {
  auto uut = block_tables{1};
  uut.append(0, ids{1, 2, 3, 4});
  uut.forget_before(0, 2);
  EXPECT_EQ(uut.view(0).first, 2u);
  EXPECT_EQ(uut.view(0).size(), 4u);
  EXPECT_THAT(uut.view(0).blocks, ElementsAre(3u, 4u));
  uut.forget_before(0, 1);
  EXPECT_EQ(uut.view(0).first, 2u) << "nothing comes back";
  uut.append(0, ids{5});
  EXPECT_THAT(uut.view(0).blocks, ElementsAre(3u, 4u, 5u));
  uut.forget_before(0, 9);
  EXPECT_EQ(uut.view(0).first, 5u) << "only what was there";
  EXPECT_THAT(uut.view(0).blocks, IsEmpty());
}

TEST(BlockTables, ClearAPlaceWhereverTheyBegin) {
  auto uut = block_tables{1};
  uut.append(0, ids{1, 2, 3, 4});
  uut.forget_before(0, 2);
  uut.clear(0, 1);
  uut.clear(0, 3);
  EXPECT_THAT(uut.view(0).blocks, ElementsAre(3u, no_block));
}

TEST(BlockTables, BeginAnewWhenEmptied) {
  auto uut = block_tables{1};
  uut.append(0, ids{1, 2});
  uut.forget_before(0, 1);
  uut.empty();
  uut.append(0, ids{7});
  EXPECT_EQ(uut.view(0).first, 0u);
  EXPECT_THAT(uut.view(0).blocks, ElementsAre(7u));
}

} // namespace
} // namespace kvtide::core
