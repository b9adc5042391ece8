// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/kv_content.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace kvtide::replay {
namespace {

class KvContent : public ::testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    shape.device_blocks = 4;
    shape.packed = GetParam();
    for (rank_id rank : {0u, 1u}) {
      auto arena = kv_arena::create(shape, rank);
      ASSERT_TRUE(arena.ok());
      arenas.push_back(std::move(arena).value());
    }
    for (rank_id rank : {0u, 1u})
      contents.emplace_back(shape, arenas[rank], rank);
  }

  void write(const block_part& part) {
    split_into_spans(text, part, [this](const kv_span& span) {
      for (auto& uut : contents)
        uut.write(span);
    });
  }

  void check(const block_part& part, check_reason reason) {
    split_into_spans(text, part, [&](const kv_span& span) {
      for (auto& uut : contents)
        uut.check({span, 7, reason, checked});
      ++checked;
    });
  }

  check_tally tally() {
    auto res = check_tally{};
    for (auto& uut : contents)
      res.add(uut.take_tally());
    return res;
  }

  geometry shape;
  std::vector<kv_arena> arenas;
  std::vector<kv_content> contents;
  std::uint64_t checked = 0;
  std::vector<std::uint64_t> ids{1};
  token_text text{ids, {{512, 9}}, 16};
};

TEST_P(KvContent, AcceptsWhatWasWritten) {
  write({0, 3, 2, 0, 5});
  write({0, 3, 2, 5, 16});
  check({0, 3, 2, 0, 16}, check_reason::loaded);
  const auto found = tally();
  EXPECT_EQ(found.all_mismatches(), 0u);
  EXPECT_EQ(found.compared_bytes[0], 2 * shape.block_bytes());
}

TEST_P(KvContent, FindsOneWrongByteAndSaysWhere) {
  write({0, 3, 2, 0, 16});
  arenas[1].piece(2, 1, 1)[22] ^= std::byte{255};
  check({0, 3, 2, 0, 16}, check_reason::finished);
  const auto all = tally();
  EXPECT_EQ(all.mismatches[2], 1u);
  ASSERT_TRUE(all.first.has_value());
  const auto& found = *all.first;
  EXPECT_EQ(found.request, 7u);
  EXPECT_EQ(found.where.rank, 1u);
  EXPECT_EQ(found.where.layer, 1u);
  EXPECT_EQ(found.where.plane, 1u);
  EXPECT_EQ(found.token, 3 * 16 + 5);
  EXPECT_EQ(found.byte, 2u);
  EXPECT_EQ(found.got, found.want ^ std::byte{255});
}

TEST_P(KvContent, NamesTheFirstOfManyWhateverTheRank) {
  write({0, 3, 2, 0, 16});
  write({0, 4, 3, 0, 16});
  arenas[0].piece(3, 0, 0)[1] ^= std::byte{255};
  arenas[1].piece(2, 0, 0)[1] ^= std::byte{255};
  check({0, 3, 2, 0, 16}, check_reason::finished);
  check({0, 4, 3, 0, 16}, check_reason::finished);
  const auto all = tally();
  EXPECT_EQ(all.all_mismatches(), 2u);
  ASSERT_TRUE(all.first.has_value());
  EXPECT_EQ(all.first->where.rank, 1u);
  EXPECT_EQ(tally().all_mismatches(), 0u);
}

TEST_P(KvContent, TellsTheBlocksOfATextApart) {
  write({0, 3, 2, 0, 16});
  check({0, 4, 2, 0, 16}, check_reason::loaded);
  // Each plane of each layer on each rank.
  EXPECT_EQ(tally().all_mismatches(), 8u);
}

TEST_P(KvContent, DescribesEveryByteOnce) {
  const auto memory = arenas[1].describe("model");
  EXPECT_EQ(memory.rank, 1u);
  EXPECT_EQ(memory.references.size(), 4u);
  for (const auto& what : memory.references) {
    const auto& tensor = memory.tensors.at(what.tensor);
    EXPECT_EQ(tensor.blocks, 5u);
    EXPECT_LE(what.offset + what.bytes, tensor.page_bytes);
    EXPECT_LE(tensor.page_bytes, tensor.block_stride);
    EXPECT_LE(tensor.blocks * tensor.block_stride, tensor.bytes);
  }
  const auto& last = memory.references.back();
  const auto& tensor = memory.tensors.at(last.tensor);
  EXPECT_EQ(static_cast<std::byte*>(tensor.base) + 2 * tensor.block_stride
              + last.offset,
            arenas[1].piece(2, 1, 1));
}

INSTANTIATE_TEST_SUITE_P(Layouts, KvContent, ::testing::Bool());

} // namespace
} // namespace kvtide::replay
