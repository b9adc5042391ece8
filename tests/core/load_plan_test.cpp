// SPDX-License-Identifier: Apache-2.0

#include "core/load_plan.hpp"
#include "tests/core/plan_shapes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::core {
namespace {

/// A request with so many hashes.
struct loads {
  loads(std::shared_ptr<const layout> layout, std::uint32_t count)
    : shape(std::move(layout)), keys(keys_up_to(shape, count).views()) {
    // nop
  }

  [[nodiscard]] std::vector<job_row>
  plan(token_count total, const std::vector<std::vector<block_id>>& blocks,
       const std::vector<std::vector<std::uint8_t>>& hashed) const {
    return plan_load(*shape, keys, total, blocks, hashed);
  }

  std::shared_ptr<const layout> shape;
  per_group<key_view> keys;
};

/// A line per row.
std::vector<std::string> text_of(const std::vector<job_row>& rows) {
  auto out = std::vector<std::string>{};
  for (const auto& row : rows)
    out.push_back(row_text(row.chunk, row.key.group, row.blocks));
  return out;
}

// GEO-01
TEST(LoadPlan, EntersTheFirstChunkOfALoadWhereTheDeviceEnds) {
  const auto it = loads{shape_of({{4}}, 4), 12};
  const auto plan
    = it.plan(48, {{1, 2, 3, 4, 5, 105, 106, 107, 108, 109, 110, 111, 112}},
              {{1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}});
  EXPECT_THAT(text_of(plan),
              ElementsAre("1/0 0 105 106 107", "2/0 108 109 110 111"));
  EXPECT_EQ(plan.at(0).key.hash, hash(7));
}

TEST(LoadPlan, EntersTheFirstChunkOfALoadByTheRemainder) {
  const auto it = loads{shape_of({{4}}, 3), 12};
  EXPECT_THAT(
    text_of(it.plan(24, {{1, 2, 3, 4, 105, 106}}, {{1, 1, 1, 1, 0, 0}})),
    ElementsAre("1/0 0 105 106"));
}

TEST(LoadPlan, LoadsOnlyTheWindowOfASlidingGroup) {
  const auto it = loads{shape_of({{4}, {4, 4}}), 3};
  EXPECT_THAT(text_of(it.plan(12, {{1, 2, 3, 4}, {0, 0, 13, 14}},
                              {{0, 0, 0, 0}, {0, 0, 0, 0}})),
              ElementsAre("0/0 1", "1/0 2", "2/0 3", "2/1 13"));
}

TEST(LoadPlan, LoadsNothingWhereEverythingIsThere) {
  const auto it = loads{shape_of({{4}}), 2};
  EXPECT_THAT(text_of(it.plan(8, {{1, 2, 3}}, {{1, 1, 0}})), IsEmpty());
}

// R13
TEST(LoadPlan, NamesAChunkWithoutAKeyByAKeyThatNobodyHas) {
  const auto it = loads{shape_of({{4}}), 1};
  const auto plan = it.plan(8, {{1, 2}}, {{0, 0}});
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[1].key.hash, prefix_hash{});
}

} // namespace
} // namespace kvtide::core
