// SPDX-License-Identifier: Apache-2.0

#include "core/store_capability.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>

using ::testing::ElementsAre;

namespace kvtide::core {
namespace {

constexpr token_count all = std::numeric_limits<token_count>::max();

group_layout group_of(token_count chunk_tokens, bool draft = false) {
  auto out = group_layout{};
  out.block_tokens = chunk_tokens;
  out.chunk_tokens = chunk_tokens;
  out.draft = draft;
  return out;
}

layout shape_of(std::initializer_list<group_layout> groups) {
  auto out = layout{};
  out.groups = groups;
  out.blocks_per_chunk = 1;
  return out;
}

TEST(StorableChunks, CountsWholeChunksOnly) {
  const auto group = group_of(4);
  EXPECT_EQ(storable_chunks(group, 1, 0, 0, {9, 9}), 0u);
  EXPECT_EQ(storable_chunks(group, 1, 3, 0, {9, 9}), 0u);
  EXPECT_EQ(storable_chunks(group, 1, 4, 0, {9, 9}), 1u);
  EXPECT_EQ(storable_chunks(group, 1, 11, 0, {9, 9}), 2u);
}

TEST(StorableChunks, IsNothingWithoutBlocks) {
  // FIN-01: keys are there, the table is not.
  EXPECT_EQ(storable_chunks(group_of(4), 1, 12, 12, {3, 0}), 0u);
}

TEST(StorableChunks, IsNothingWithoutKeys) {
  EXPECT_EQ(storable_chunks(group_of(4), 1, 12, 12, {0, 3}), 0u);
}

TEST(StorableChunks, NeedsAllBlocksOfAChunk) {
  EXPECT_EQ(storable_chunks(group_of(12), 3, 36, 36, {3, 8}), 2u);
}

TEST(StorableChunks, WithholdsADraftGroupsLastChunkInDecodeOnly) {
  const auto draft = group_of(4, true);
  EXPECT_EQ(storable_chunks(draft, 1, 12, 12, {9, 9}), 3u);
  EXPECT_EQ(storable_chunks(draft, 1, 13, 12, {9, 9}), 2u);
  EXPECT_EQ(storable_chunks(draft, 1, 3, 2, {9, 9}), 0u);
}

TEST(Advance, MovesToTheStorableChunks) {
  auto next = per_group<std::size_t>{0, 1};
  advance(shape_of({group_of(4), group_of(8)}), {3, 2}, all, next);
  EXPECT_THAT(next, ElementsAre(3u, 2u));
}

TEST(Advance, StopsWhereTheStoreWasRefused) {
  auto next = per_group<std::size_t>{0, 0};
  advance(shape_of({group_of(4), group_of(8)}), {4, 2}, 11, next);
  EXPECT_THAT(next, ElementsAre(2u, 1u));
}

TEST(Advance, NeverGoesBack) {
  auto next = per_group<std::size_t>{5};
  advance(shape_of({group_of(4)}), {3}, all, next);
  EXPECT_THAT(next, ElementsAre(5u));
}

TEST(NextBoundary, IsWhereTheFirstGroupCanStore) {
  EXPECT_EQ(next_boundary(shape_of({group_of(8), group_of(4)}), {0, 2}, 0), 8);
  EXPECT_EQ(next_boundary(shape_of({group_of(8), group_of(4)}), {2, 2}, 0), 12);
}

RC_GTEST_PROP(Advance, NeverPassesTheClamp, ()) {
  const auto per_chunk = *rc::gen::inRange<std::size_t>(1, 4);
  auto group = group_of(*rc::gen::inRange<token_count>(1, 9),
                        *rc::gen::arbitrary<bool>());
  const auto prompt = *rc::gen::inRange<token_count>(0, 60);
  const auto stock = group_stock{*rc::gen::inRange<std::size_t>(0, 20),
                                 *rc::gen::inRange<std::size_t>(0, 60)};
  const auto shape = shape_of({group});
  auto next = per_group<std::size_t>{0};
  // Whatever is wanted and granted, in any order.
  for (auto i = 0; i < 8; ++i) {
    const auto wanted = *rc::gen::inRange<token_count>(0, 200);
    const auto settled = *rc::gen::arbitrary<bool>()
                         ? all
                         : *rc::gen::inRange<token_count>(0, 200);
    const auto storable
      = storable_chunks(group, per_chunk, wanted, prompt, stock);
    RC_ASSERT(storable <= stock.keys);
    RC_ASSERT(storable * per_chunk <= stock.blocks);
    RC_ASSERT(static_cast<token_count>(storable) * group.chunk_tokens
              <= wanted);
    const auto before = next[0];
    advance(shape, {storable}, settled, next);
    RC_ASSERT(next[0] >= before);
    RC_ASSERT(next[0] <= std::max(before, storable));
    RC_ASSERT(next[0] == before
              || static_cast<token_count>(next[0]) * group.chunk_tokens
                   <= settled);
  }
}

RC_GTEST_PROP(NextBoundary, NothingIsStorableBelowIt, ()) {
  auto shape = shape_of({group_of(*rc::gen::inRange<token_count>(1, 9),
                                  *rc::gen::arbitrary<bool>()),
                         group_of(*rc::gen::inRange<token_count>(1, 9),
                                  *rc::gen::arbitrary<bool>())});
  const auto next = per_group<std::size_t>{
    *rc::gen::inRange<std::size_t>(0, 9), *rc::gen::inRange<std::size_t>(0, 9)};
  const auto prompt = *rc::gen::inRange<token_count>(0, 60);
  const auto boundary = next_boundary(shape, next, prompt);
  for (token_count wanted = 0; wanted < boundary; ++wanted)
    for (std::size_t g = 0; g < 2; ++g)
      RC_ASSERT(storable_chunks(shape.groups[g], 1, wanted, prompt, {99, 99})
                <= next[g]);
}

} // namespace
} // namespace kvtide::core
