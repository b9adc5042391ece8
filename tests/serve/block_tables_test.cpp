// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/engine/block_tables.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace serve {
namespace {

using kvtide::no_block;

constexpr std::int32_t block_tokens = 16;

sequence_ptr make(completion_id id, std::size_t prompt, std::string salt = {}) {
  auto what = completion_request{};
  what.prompt.assign(prompt, 'x');
  what.cache_salt = std::move(salt);
  auto res = std::make_shared<sequence>(id, std::move(what),
                                        completion_callbacks{}, block_tokens);
  res->hashes = res->hasher.append(res->tokens.data(), res->tokens.size());
  return res;
}

void compute_all(block_tables& tables, sequence& seq) {
  tables.take_prefix(seq);
  ASSERT_TRUE(tables.grow(seq, seq.known(), seq.local));
  seq.computed = seq.known();
  tables.publish(seq);
}

struct FullTables : ::testing::Test {
  block_tables uut{model_shape{model_variant::full_attention}, block_tokens,
                   16};
};

struct SlidingTables : ::testing::Test {
  block_tables uut{model_shape{model_variant::sliding_window}, block_tokens,
                   32};
};

TEST_F(FullTables, FindWholeBlocksAndLeaveATokenToCompute) {
  const auto first = make(1, 64);
  compute_all(uut, *first);
  const auto same = make(2, 64);
  uut.take_prefix(*same);
  EXPECT_EQ(same->local, 48) << "the last token's output is wanted";
  const auto longer = make(3, 70);
  uut.take_prefix(*longer);
  EXPECT_EQ(longer->local, 64);
  EXPECT_EQ(longer->table, first->table);
  const auto salted = make(4, 64, "salt");
  uut.take_prefix(*salted);
  EXPECT_EQ(salted->local, 0);
}

TEST_F(FullTables, KeepContentUntilBlocksAreUsedAgain) {
  const auto first = make(1, 64);
  compute_all(uut, *first);
  uut.release(first->table);
  EXPECT_EQ(uut.pool().free_blocks(), 16u);
  const auto other = make(2, 13 * 16, "salt"); // Takes the 12 empty ones first.
  compute_all(uut, *other);
  const auto again = make(3, 65);
  uut.take_prefix(*again);
  EXPECT_EQ(again->local, 48) << "the end of a text goes first";
}

TEST_F(FullTables, GrowOnlyIfThereIsRoomForAll) {
  const auto one = make(1, 15 * 16);
  compute_all(uut, *one);
  const auto other = make(2, 32, "salt");
  uut.take_prefix(*other);
  EXPECT_FALSE(uut.grow(*other, 32, 0));
  EXPECT_EQ(uut.pool().free_blocks(), 1u);
  EXPECT_TRUE(uut.grow(*other, 16, 0));
}

TEST_F(FullTables, ReplaceLostBlocks) {
  const auto one = make(1, 64);
  uut.take_prefix(*one);
  ASSERT_TRUE(uut.grow(*one, 64, 64));
  const auto before = one->table[0];
  const auto lost = std::vector{before[1], before[2]};
  ASSERT_TRUE(uut.mend(*one, 16, lost));
  EXPECT_EQ(one->table[0][0], before[0]);
  EXPECT_EQ(one->table[0][3], before[3]);
  for (const auto index : {1U, 2U})
    EXPECT_EQ(std::count(lost.begin(), lost.end(), one->table[0][index]), 0);
  EXPECT_EQ(uut.pool().free_blocks(), 10u) << "lost ones are not free";
  uut.release(lost);
  uut.release(one->table);
  EXPECT_EQ(uut.pool().free_blocks(), 16u);
}

TEST_F(FullTables, KeepWhatALoadMayStillWrite) {
  const auto one = make(1, 64);
  uut.take_prefix(*one);
  ASSERT_TRUE(uut.grow(*one, 64, 64));
  const auto held = std::vector{one->table[0][3], one->table[0][0]};
  uut.release(one->table, held);
  EXPECT_EQ(uut.pool().free_blocks(), 14u);
  uut.release(held);
  EXPECT_EQ(uut.pool().free_blocks(), 16u);
}

TEST_F(SlidingTables, LeaveHolesWhereNothingIsReadAnyMore) {
  const auto one = make(1, 160);
  uut.take_prefix(*one);
  ASSERT_TRUE(uut.grow(*one, 160, 0));
  EXPECT_EQ(uut.pool().free_blocks(), 12u);
  one->computed = 127; // Attends to 64 and on.
  uut.leave_window(*one);
  EXPECT_EQ(std::count(one->table[0].begin(), one->table[0].end(), no_block),
            0);
  EXPECT_EQ(std::count(one->table[1].begin(), one->table[1].end(), no_block),
            4);
  EXPECT_NE(one->table[1][4], no_block);
}

TEST_F(SlidingTables, AllocateNoBlocksBeforeTheWindowOfALoad) {
  const auto one = make(1, 200);
  uut.take_prefix(*one);
  ASSERT_TRUE(uut.grow(*one, 160, 160)); // A load up to 160.
  EXPECT_EQ(one->table[1][5], no_block);
  EXPECT_NE(one->table[1][6], no_block) << "97 is read";
  // The load fails: all is computed again, and nothing may be missing.
  ASSERT_TRUE(uut.mend(*one, 0, {}));
  EXPECT_EQ(std::count(one->table[1].begin(), one->table[1].end(), no_block),
            0);
}

TEST_F(SlidingTables, FindAPrefixOnlyIfItsWindowIsThere) {
  const auto one = make(1, 160);
  compute_all(uut, *one);
  const auto gone = one->table[1][5]; // Tokens 80 to 95.
  uut.release(one->table);
  // Hand out the block of the window, and only that one.
  auto taken = std::vector<kvtide::block_id>{};
  const auto other = make(2, 1, "salt");
  uut.take_prefix(*other);
  for (auto tokens = 16; std::count(taken.begin(), taken.end(), gone) == 0;
       tokens += 16) {
    ASSERT_TRUE(uut.grow(*other, tokens, 0));
    taken.clear();
    for (const auto& blocks : other->table)
      taken.insert(taken.end(), blocks.begin(), blocks.end());
  }
  const auto again = make(3, 161);
  uut.take_prefix(*again);
  EXPECT_LE(again->local, 80);
  for (const auto& blocks : again->table)
    for (const auto block : blocks)
      EXPECT_EQ(std::count(taken.begin(), taken.end(), block), 0);
}

} // namespace
} // namespace serve
