// SPDX-License-Identifier: Apache-2.0

#include "gpu/geometry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace kvtide::gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::uint32_t blocks = 8;
constexpr std::uint64_t stride = 96;
constexpr std::uint64_t page = 80;

/// Two groups on one tensor with padding behind each page, and a second tensor
/// that only group 1 uses.
class geometry_test : public ::testing::Test {
protected:
  geometry_test() : first_(blocks * stride), second_(blocks * 16) {
    memory_.tensors.push_back(
      {first_.data(), first_.size(), memory_kind::host, blocks, stride, page});
    memory_.tensors.push_back(
      {second_.data(), second_.size(), memory_kind::host, blocks, 16, 16});
    memory_.references.push_back({0, 0, 0, 0, 32});
    memory_.references.push_back({0, 1, 0, 40, 40});
    memory_.references.push_back({1, 2, 0, 0, 8});
    memory_.references.push_back({1, 2, 1, 0, 16});
  }

  result<geometry> make(std::uint32_t groups = 2,
                        std::uint32_t blocks_per_chunk = 4,
                        memory_domain domain = memory_domain::host_only) {
    return make_geometry(memory_, groups, blocks_per_chunk, domain);
  }

  void expect_refused(const std::string& words,
                      ec code = ec::invalid_argument) {
    const auto made = make();
    ASSERT_FALSE(made.ok()) << "expected: " << words;
    EXPECT_EQ(made.failure().code, code);
    EXPECT_THAT(made.failure().text, StartsWith("register_kv: "));
    EXPECT_THAT(made.failure().text, HasSubstr(words));
  }

  std::byte* device(std::uint64_t block, std::uint64_t offset) {
    return first_.data() + block * stride + offset;
  }

  std::vector<std::byte> first_;
  std::vector<std::byte> second_;
  kv_memory memory_;
};

job_row row_of(slot_id slot, std::vector<block_id> ids) {
  job_row row;
  row.slot = slot;
  row.blocks = std::move(ids);
  return row;
}

TEST_F(geometry_test, CountsTheBytesOfBlocksAndSlots) {
  const auto made = make();
  ASSERT_TRUE(made.ok()) << made.failure().text;
  EXPECT_EQ(made.value().groups(), 2u);
  EXPECT_EQ(made.value().blocks_per_chunk(), 4u);
  EXPECT_EQ(made.value().block_bytes(0), 72u);
  EXPECT_EQ(made.value().block_bytes(1), 24u);
  EXPECT_EQ(made.value().slot_bytes(), 320u); // 288 rounded up to 64.
  EXPECT_EQ(made.value().slots_in(319), 0u);
  EXPECT_EQ(made.value().slots_in(961), 3u);
  EXPECT_EQ(made.value().slots_in(std::numeric_limits<std::uint64_t>::max()),
            std::numeric_limits<std::uint32_t>::max());
}

TEST_F(geometry_test, AGroupHasAsManyBlocksAsItsSmallestTensor) {
  memory_.tensors[1].blocks = 5;
  const auto made = make();
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made.value().blocks(0), blocks);
  EXPECT_EQ(made.value().blocks(1), 5u);
}

TEST_F(geometry_test, RefusesNothingToDo) {
  EXPECT_FALSE(make(0, 4).ok());
  EXPECT_FALSE(make(2, 0).ok());
}

TEST_F(geometry_test, RefusesATensorWithoutBase) {
  memory_.tensors[1].base = nullptr;
  expect_refused("tensor 1 has no base");
}

TEST_F(geometry_test, RefusesAnEmptyTensor) {
  memory_.tensors[0].blocks = 0;
  expect_refused("tensor 0 is empty");
}

TEST_F(geometry_test, RefusesAStrideBelowThePage) {
  memory_.tensors[0].block_stride = page - 1;
  expect_refused("tensor 0 has a block stride of 79 bytes");
}

TEST_F(geometry_test, RefusesATensorTooSmallForItsBlocks) {
  memory_.tensors[0].bytes = (blocks - 1) * stride + page;
  EXPECT_TRUE(make().ok()) << "the last block needs its page only";
  --memory_.tensors[0].bytes;
  expect_refused("tensor 0 has 751 bytes, too few for 8 blocks");
}

TEST_F(geometry_test, RefusesNumbersThatWouldWrap) {
  memory_.tensors[0].block_stride = std::uint64_t{1} << 62;
  expect_refused("tensor 0");
  memory_.tensors[0].block_stride = stride;
  memory_.tensors[0].bytes = std::numeric_limits<std::uint64_t>::max();
  expect_refused("beyond the address space");
}

TEST_F(geometry_test, RefusesMemoryThatTheEngineCannotCopy) {
  for (const auto kind : {memory_kind::device, memory_kind::device_mapped}) {
    memory_.tensors[1].kind = kind;
    expect_refused("tensor 1 is not plain host memory", ec::unsupported);
    EXPECT_TRUE(make(2, 4, memory_domain::any).ok());
  }
}

TEST_F(geometry_test, RefusesAReferenceToAnUnknownTensor) {
  memory_.references[3].tensor = 2;
  expect_refused("reference 3 (group 1, layer 2) names tensor 2; there are 2");
}

TEST_F(geometry_test, RefusesAReferenceToAnUnknownGroup) {
  memory_.references[3].group = 2;
  expect_refused("names a group that is not configured; there are 2");
}

TEST_F(geometry_test, RefusesAReferenceWithoutBytes) {
  memory_.references[0].bytes = 0;
  expect_refused("reference 0 (group 0, layer 0) has zero bytes");
}

TEST_F(geometry_test, RefusesAReferenceBeyondThePage) {
  memory_.references[1].bytes = 41;
  expect_refused("41 bytes at offset 40, beyond the page of 80 bytes");
  memory_.references[1].bytes = 40;
  memory_.references[1].offset = std::numeric_limits<std::uint64_t>::max();
  expect_refused("reference 1");
}

TEST_F(geometry_test, RefusesAGroupWithoutReference) {
  EXPECT_FALSE(make(3).ok());
  EXPECT_THAT(make(3).failure().text, HasSubstr("group 2 has no reference"));
}

TEST_F(geometry_test, RefusesReferencesOfAGroupThatOverlap) {
  memory_.references[1].offset = 31;
  expect_refused("reference 0 (group 0, layer 0) and reference 1");
}

TEST_F(geometry_test, LetsGroupsShareMemory) {
  memory_.references[2] = {1, 2, 0, 0, 72};
  EXPECT_TRUE(make().ok());
}

TEST_F(geometry_test, SeesAnOverlapAcrossTensors) {
  memory_.tensors[1] = memory_.tensors[0];
  memory_.references[2] = {1, 2, 0, 16, 16};
  memory_.references[3] = {1, 2, 1, 31, 16};
  expect_refused("overlap");
  memory_.references[3].offset = 32;
  EXPECT_TRUE(make().ok());
  // Another stride on the same bytes.
  memory_.tensors[1].block_stride = page;
  expect_refused("overlap");
}

TEST_F(geometry_test, TakesKAndVInInterleavedPlanes) {
  // [block][K or V][40 bytes], told as two tensors.
  memory_.tensors[0]
    = {first_.data(), 7 * stride + 40, memory_kind::host, blocks, stride, 40};
  memory_.tensors[1] = {
    first_.data() + 40, 7 * stride + 40, memory_kind::host, blocks, stride, 40};
  memory_.references = {{0, 0, 0, 0, 40}, {0, 0, 1, 0, 40}};
  EXPECT_TRUE(make(1).ok());
}

TEST_F(geometry_test, LaysBlocksOutFirstAndReferencesInOrder) {
  const auto made = make();
  ASSERT_TRUE(made.ok());
  std::vector<std::byte> host(3 * made.value().slot_bytes());
  const slot_pool pool{host.data(), 3};
  std::vector<fragment> out;
  const auto failure = made.value().append_fragments(
    job_kind::store, row_of(2, {3, no_block, no_block, 5}), 7, 0, pool, out);
  ASSERT_EQ(failure.code, ec::none) << failure.text;
  auto* slot = host.data() + 640;
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(out[0].src, device(3, 0));
  EXPECT_EQ(out[0].dst, slot);
  EXPECT_EQ(out[0].bytes, 32u);
  EXPECT_EQ(out[0].row, 7u);
  EXPECT_EQ(out[1].src, device(3, 40));
  EXPECT_EQ(out[1].dst, slot + 32);
  EXPECT_EQ(out[1].bytes, 40u);
  EXPECT_EQ(out[2].src, device(5, 0));
  EXPECT_EQ(out[2].dst, slot + 3 * 72);
  EXPECT_EQ(out[3].dst, slot + 3 * 72 + 32);
}

TEST_F(geometry_test, MergesWhatIsAdjacentOnBothSides) {
  memory_.references = {{0, 0, 1, 0, 6}, {0, 1, 1, 6, 10}};
  const auto made = make(1);
  ASSERT_TRUE(made.ok());
  std::vector<std::byte> host(made.value().slot_bytes());
  const slot_pool pool{host.data(), 1};
  std::vector<fragment> out;
  // Blocks 2, 3, 4 in a row are one piece; going back to 1 begins another.
  ASSERT_EQ(made.value()
              .append_fragments(job_kind::load, row_of(0, {2, 3, 4, 1}), 0, 0,
                                pool, out)
              .code,
            ec::none);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].dst, second_.data() + 32);
  EXPECT_EQ(out[0].src, host.data());
  EXPECT_EQ(out[0].bytes, 48u);
  EXPECT_EQ(out[1].dst, second_.data() + 16);
  EXPECT_EQ(out[1].src, host.data() + 48);
  // A hole between blocks that are adjacent on the device keeps them apart.
  out.clear();
  ASSERT_EQ(made.value()
              .append_fragments(job_kind::load, row_of(0, {2, no_block, 3, 4}),
                                0, 0, pool, out)
              .code,
            ec::none);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[1].src, host.data() + 32);
}

TEST_F(geometry_test, RowsStayApart) {
  memory_.references = {{0, 0, 1, 0, 16}};
  const auto made = make(1);
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made.value().slot_bytes(), 64u);
  std::vector<std::byte> host(128);
  const slot_pool pool{host.data(), 2};
  std::vector<fragment> out;
  for (std::uint32_t i = 0; i < 2; ++i) {
    const auto at = 4 * i;
    ASSERT_EQ(made.value()
                .append_fragments(job_kind::load,
                                  row_of(i, {at, at + 1, at + 2, at + 3}), i, 0,
                                  pool, out)
                .code,
              ec::none);
  }
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].row, 0u);
  EXPECT_EQ(out[1].row, 1u);
}

/// GEO-01: a load that enters a chunk at sub-block 1 reads from there.
TEST(geometry, Geo01EntersTheFirstChunkAtItsSubBlock) {
  constexpr std::uint32_t count = 120;
  std::vector<std::byte> device(count * 8);
  kv_memory memory;
  memory.tensors.push_back(
    {device.data(), device.size(), memory_kind::host, count, 8, 8});
  memory.references.push_back({0, 0, 0, 0, 8});
  const auto made = make_geometry(memory, 1, 4, memory_domain::host_only);
  ASSERT_TRUE(made.ok());
  std::vector<std::byte> host(3 * made.value().slot_bytes());
  const slot_pool pool{host.data(), 3};
  std::vector<fragment> out;
  ASSERT_EQ(made.value()
              .append_fragments(job_kind::load,
                                row_of(1, {no_block, 105, 106, 107}), 0, 0,
                                pool, out)
              .code,
            ec::none);
  ASSERT_EQ(made.value()
              .append_fragments(job_kind::load, row_of(2, {108, 109, 110, 111}),
                                1, 0, pool, out)
              .code,
            ec::none);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].src, host.data() + 64 + 8);
  EXPECT_EQ(out[0].dst, device.data() + 105 * 8);
  EXPECT_EQ(out[0].bytes, 24u);
  EXPECT_EQ(out[1].src, host.data() + 128);
  EXPECT_EQ(out[1].dst, device.data() + 108 * 8);
  EXPECT_EQ(out[1].bytes, 32u);
}

/// GEO-04: the first invalid block and slot are refused, with their ids.
TEST_F(geometry_test, Geo04RefusesIdsOutsideTheRegisteredMemory) {
  const auto made = make();
  ASSERT_TRUE(made.ok());
  std::vector<std::byte> host(2 * made.value().slot_bytes());
  const slot_pool pool{host.data(), 2};
  std::vector<fragment> out(1);
  const auto ask = [&](job_row row, group_id group) {
    return made.value().append_fragments(job_kind::load, row, 3, group, pool,
                                         out);
  };
  auto row = row_of(1, {1, 2, 3, blocks});
  row.chunk = 9;
  const auto block = ask(row, 0);
  EXPECT_EQ(block.code, ec::invalid_argument);
  EXPECT_THAT(block.text, HasSubstr("row 3 (group 0, chunk 9, slot 1)"));
  EXPECT_THAT(block.text, HasSubstr("block 8"));
  const auto slot = ask(row_of(2, {1, 2, 3, 4}), 0);
  EXPECT_EQ(slot.code, ec::invalid_argument);
  EXPECT_THAT(slot.text, HasSubstr("slot 2): the host pool has 2 slots"));
  EXPECT_THAT(ask(row_of(0, {1, 2, 3}), 0).text, HasSubstr("names 3 blocks"));
  EXPECT_THAT(ask(row_of(0, {1, 2, 3, 4}), 2).text, HasSubstr("2 groups"));
  EXPECT_EQ(out.size(), 1u) << "nothing may be appended";
}

} // namespace
} // namespace kvtide::gpu
