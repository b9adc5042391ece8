// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/block_pool.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <vector>

namespace kvtide::replay {
namespace {

using reuse = block_pool::reuse;

TEST(BlockPool, HandsOutEachBlockOnce) {
  auto pool = block_pool{3};
  EXPECT_EQ(pool.free_blocks(), 3u);
  EXPECT_EQ(pool.allocate(), 1u);
  EXPECT_EQ(pool.allocate(), 2u);
  EXPECT_EQ(pool.allocate(), 3u);
  EXPECT_EQ(pool.free_blocks(), 0u);
}

TEST(BlockPool, ReusesTheLeastRecentlyFreedBlockFirst) {
  auto pool = block_pool{2};
  const auto first = pool.allocate();
  const auto second = pool.allocate();
  pool.publish(first, 10);
  pool.publish(second, 20);
  pool.release(second, reuse::last);
  pool.release(first, reuse::last);
  EXPECT_EQ(pool.allocate(), second);
}

TEST(BlockPool, ReusesABlockAtOnceIfTold) {
  auto pool = block_pool{3};
  const auto block = pool.allocate();
  pool.publish(block, 10);
  pool.release(block, reuse::first);
  EXPECT_EQ(pool.allocate(), block);
}

TEST(BlockPool, ReusesABlockWithoutContentAtOnce) {
  auto pool = block_pool{3};
  const auto block = pool.allocate();
  pool.release(block, reuse::last);
  EXPECT_EQ(pool.allocate(), block);
}

TEST(BlockPool, FindsContentUntilItsBlockIsHandedOut) {
  auto pool = block_pool{1};
  const auto block = pool.allocate();
  pool.publish(block, 10);
  pool.release(block, reuse::last);
  EXPECT_EQ(pool.find(10), block);
  EXPECT_EQ(pool.allocate(), block);
  EXPECT_EQ(pool.find(10), no_block);
}

TEST(BlockPool, KeepsTheFirstOfTwoBlocksWithTheSameContent) {
  auto pool = block_pool{2};
  const auto first = pool.allocate();
  const auto second = pool.allocate();
  pool.publish(first, 10);
  pool.publish(second, 10);
  EXPECT_EQ(pool.find(10), first);
}

TEST(BlockPool, TakesAFreeBlockBackIntoUse) {
  auto pool = block_pool{2};
  const auto block = pool.allocate();
  pool.publish(block, 10);
  pool.release(block, reuse::first);
  pool.retain(block);
  EXPECT_EQ(pool.users(block), 1u);
  EXPECT_NE(pool.allocate(), block);
  EXPECT_EQ(pool.free_blocks(), 0u);
}

// Compares with a plain table of users and contents.
RC_GTEST_PROP(BlockPool, NeverHandsOutABlockInUse, ()) {
  constexpr std::uint32_t size = 6;
  auto pool = block_pool{size};
  auto users = std::map<block_id, std::uint32_t>{};
  auto content = std::map<std::uint64_t, block_id>{};
  const auto steps = *rc::gen::inRange(0, 200);
  for (auto step = 0; step < steps; ++step) {
    const auto block = *rc::gen::inRange<block_id>(1, size + 1);
    const auto key = *rc::gen::inRange<std::uint64_t>(1, 8);
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        if (pool.free_blocks() > 0) {
          const auto got = pool.allocate();
          RC_ASSERT(users[got] == 0u);
          users[got] = 1;
          std::erase_if(
            content, [got](const auto& entry) { return entry.second == got; });
        }
        break;
      case 1:
        pool.retain(block);
        ++users[block];
        break;
      case 2:
        if (users[block] > 0) {
          pool.release(block, key % 2 == 0 ? reuse::first : reuse::last);
          --users[block];
        }
        break;
      default:
        if (users[block] > 0) {
          pool.publish(block, key);
          const auto known = std::any_of(
            content.begin(), content.end(),
            [block](const auto& entry) { return entry.second == block; });
          if (!known)
            content.emplace(key, block);
        }
    }
    auto unused = std::size_t{0};
    for (auto id = block_id{1}; id <= size; ++id) {
      RC_ASSERT(pool.users(id) == users[id]);
      unused += users[id] == 0 ? 1 : 0;
    }
    RC_ASSERT(pool.free_blocks() == unused);
    for (auto wanted = std::uint64_t{1}; wanted < 8; ++wanted)
      RC_ASSERT(pool.find(wanted)
                == (content.count(wanted) > 0 ? content[wanted] : no_block));
  }
}

TEST(BlockPool, ForgetsWhatItsBlocksHold) {
  auto uut = block_pool{3};
  const auto used = uut.allocate();
  uut.publish(used, 7);
  const auto freed = uut.allocate();
  uut.publish(freed, 8);
  uut.release(freed, block_pool::reuse::last);
  uut.forget_contents();
  EXPECT_EQ(uut.find(7), no_block);
  EXPECT_EQ(uut.find(8), no_block);
  EXPECT_EQ(uut.free_blocks(), 2u);
  uut.publish(used, 9);
  EXPECT_EQ(uut.find(9), used);
}

} // namespace
} // namespace kvtide::replay
