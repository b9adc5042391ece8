// SPDX-License-Identifier: Apache-2.0

#include "gpu/kv_registration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace kvtide::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t block_bytes = 64;

class kv_registration_of_one_tensor : public ::testing::Test {
protected:
  kv_memory memory() {
    auto out = kv_memory{};
    out.tensors = {{bytes.data(), bytes.size(), memory_kind::host, 8,
                    block_bytes, block_bytes}};
    out.references = {{0, 0, 0, 0, block_bytes}};
    return out;
  }

  static registration_config config() {
    auto out = registration_config{};
    out.blocks_per_chunk = 2;
    out.pool.host_bytes = 4 * 2 * block_bytes;
    return out;
  }

  static job_row row(slot_id slot, std::vector<block_id> blocks) {
    auto out = job_row{};
    out.slot = slot;
    out.blocks = std::move(blocks);
    return out;
  }

  std::vector<std::byte> bytes = std::vector<std::byte>(8 * block_bytes);
  host_pool_memory pool;
};

TEST_F(kv_registration_of_one_tensor, OpensTheSamePoolAgain) {
  const auto first = open_kv(memory(), config(), pool);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first.value().pool.slots, 4u);
  const auto again = open_kv(memory(), config(), pool);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value().pool.base, first.value().pool.base);
}

TEST_F(kv_registration_of_one_tensor, RefusesMemoryBeforeThePoolIsMapped) {
  auto wrong = memory();
  wrong.references[0].tensor = 1;
  const auto refused = open_kv(wrong, config(), pool);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, ec::invalid_argument);
  // Were it mapped, a chunk of another form would be refused now.
  auto other = memory();
  other.references[0].bytes = block_bytes / 2;
  EXPECT_TRUE(open_kv(other, config(), pool).ok());
}

TEST_F(kv_registration_of_one_tensor, RefusesAnotherDevicesTensors) {
  auto elsewhere = memory();
  elsewhere.tensors[0].kind = memory_kind::device;
  const auto refused = open_kv(elsewhere, config(), pool);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, ec::unsupported);
}

TEST_F(kv_registration_of_one_tensor, NamesEachSlotOfAJobOnce) {
  const auto opened = open_kv(memory(), config(), pool);
  ASSERT_TRUE(opened.ok());
  const auto copies
    = make_copies({7,
                   job_kind::load,
                   0,
                   {{row(3, {1, 2}), row(0, {3, no_block}), row(3, {5, 6})}}},
                  opened.value());
  ASSERT_TRUE(copies.ok());
  EXPECT_EQ(copies.value().id, 7u);
  EXPECT_EQ(copies.value().kind, job_kind::load);
  EXPECT_THAT(copies.value().slots, ElementsAre(0u, 3u));
  std::vector<std::uint32_t> rows;
  for (const auto& piece : copies.value().fragments)
    rows.push_back(piece.row);
  EXPECT_THAT(rows, ElementsAre(0u, 1u, 2u));
}

TEST_F(kv_registration_of_one_tensor, NamesTheRowThatDoesNotFit) {
  const auto opened = open_kv(memory(), config(), pool);
  ASSERT_TRUE(opened.ok());
  const auto refused
    = make_copies({7, job_kind::store, 0, {{row(0, {1, 2}), row(1, {3, 8})}}},
                  opened.value());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, ec::invalid_argument);
  EXPECT_THAT(refused.failure().text, HasSubstr("row 1"));
  EXPECT_THAT(refused.failure().text, HasSubstr("block 8"));
}

} // namespace
} // namespace kvtide::gpu
