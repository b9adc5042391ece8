// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/kv_tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace kvtide::replay {
namespace {

using ::testing::ElementsAre;
using reuse = block_pool::reuse;

class KvTables : public ::testing::Test {
protected:
  static geometry make_shape(std::uint32_t window) {
    auto res = geometry{};
    res.tokens_per_block = 4;
    res.device_blocks = 12;
    res.sliding_window = window;
    return res;
  }

  sequence make(const geometry& shape, token_count known) {
    auto res = sequence{token_text{ids, {{512, 9}}, 4}};
    res.known = known;
    res.tables.assign(shape.groups(), {});
    return res;
  }

  std::vector<std::uint64_t> ids{1};
};

TEST_F(KvTables, FindsWholeBlocksThatWerePublished) {
  const auto shape = make_shape(0);
  auto uut = kv_tables{shape};
  auto seq = make(shape, 10);
  ASSERT_TRUE(uut.grow(seq, 10, 0));
  EXPECT_THAT(seq.tables[0], ElementsAre(1u, 2u, 3u));
  seq.computed = 10;
  uut.publish(seq);
  EXPECT_EQ(uut.find_prefix(seq.text, 10), 8);
  EXPECT_EQ(uut.find_prefix(seq.text, 7), 4);
  uut.release(seq, reuse::last);
  EXPECT_EQ(uut.pool().free_blocks(), 12u);
  auto other = make(shape, 10);
  uut.take_prefix(other, 8);
  EXPECT_THAT(other.tables[0], ElementsAre(1u, 2u));
  EXPECT_EQ(uut.pool().free_blocks(), 10u);
}

TEST_F(KvTables, PublishesNothingThatIsNotKnown) {
  const auto shape = make_shape(0);
  auto uut = kv_tables{shape};
  auto seq = make(shape, 7);
  ASSERT_TRUE(uut.grow(seq, 8, 0));
  seq.computed = 8;
  uut.publish(seq);
  EXPECT_EQ(uut.find_prefix(seq.text, 8), 4);
}

TEST_F(KvTables, ChangesNothingIfTooFewBlocksAreFree) {
  const auto shape = make_shape(0);
  auto uut = kv_tables{shape};
  auto seq = make(shape, 100);
  EXPECT_FALSE(uut.grow(seq, 49, 0));
  EXPECT_TRUE(seq.tables[0].empty());
  EXPECT_EQ(uut.pool().free_blocks(), 12u);
}

TEST_F(KvTables, KeepsBlocksThatALoadMayStillWrite) {
  const auto shape = make_shape(0);
  auto uut = kv_tables{shape};
  auto seq = make(shape, 12);
  ASSERT_TRUE(uut.grow(seq, 12, 0));
  uut.release(seq, reuse::last, {3, 2});
  EXPECT_EQ(uut.pool().free_blocks(), 10u);
  uut.release({2, 3});
  EXPECT_EQ(uut.pool().free_blocks(), 12u);
}

TEST_F(KvTables, LeavesBlocksBehindTheWindow) {
  const auto shape = make_shape(6);
  auto uut = kv_tables{shape};
  auto seq = make(shape, 16);
  ASSERT_TRUE(uut.grow(seq, 16, 0));
  EXPECT_THAT(seq.tables[1], ElementsAre(5u, 6u, 7u, 8u));
  seq.computed = 14;
  // Token 14 attends to tokens 9 to 14, which start in block 2.
  uut.leave_window(seq);
  EXPECT_THAT(seq.tables[1], ElementsAre(0u, 0u, 7u, 8u));
  EXPECT_THAT(seq.tables[0], ElementsAre(1u, 2u, 3u, 4u));
}

TEST_F(KvTables, LoadsOnlyTheWindow) {
  const auto shape = make_shape(6);
  auto uut = kv_tables{shape};
  auto seq = make(shape, 16);
  ASSERT_TRUE(uut.grow(seq, 15, 15));
  EXPECT_THAT(seq.tables[0], ElementsAre(1u, 2u, 3u, 4u));
  EXPECT_THAT(seq.tables[1], ElementsAre(0u, 0u, 5u, 6u));
}

TEST_F(KvTables, FindsAPrefixOnlyWhereTheWindowIsThere) {
  const auto shape = make_shape(6);
  auto uut = kv_tables{shape};
  auto seq = make(shape, 16);
  ASSERT_TRUE(uut.grow(seq, 16, 0));
  seq.computed = 16;
  uut.publish(seq);
  EXPECT_EQ(uut.find_prefix(seq.text, 16), 16);
  uut.leave_window(seq);
  uut.release(seq, reuse::last);
  // The window's block 1 gets new content: 16 and 12 tokens still have
  // theirs, 8 tokens have not.
  auto other = make(shape, 40);
  other.text = token_text{ids, {{0, 77}}, 4};
  ASSERT_TRUE(uut.grow(other, 8, 8));
  EXPECT_EQ(uut.find_prefix(seq.text, 16), 16);
}

} // namespace
} // namespace kvtide::replay
