// SPDX-License-Identifier: Apache-2.0

#include "core/request_keys.hpp"
#include "tests/core/plan_shapes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::core {
namespace {

using tokens = std::vector<std::int32_t>;

/// What an event says of a chunk.
store_candidate described(const request_keys& keys, std::uint32_t chunk,
                          group_id group = 0) {
  auto out = store_candidate{};
  out.key.group = group;
  out.chunk = chunk;
  keys.describe(out);
  return out;
}

TEST(RequestKeys, TakesTheLastHashOfAChunkAsItsKey) {
  const auto views = keys_up_to(shape_of({{4}, {8}}, 2), 4).views();
  ASSERT_EQ(views.size(), 2u);
  ASSERT_EQ(views[0].size(), 2u);
  EXPECT_EQ(views[0].hash(0), hash(1));
  EXPECT_EQ(views[0].hash(1), hash(3));
  ASSERT_EQ(views[1].size(), 1u);
  EXPECT_EQ(views[1].hash(0), hash(3));
  EXPECT_EQ(views[1][0].group, 1u);
}

// Equal tokens of another model, or in another layout, are never found.
TEST(RequestKeys, CarryTheModelsFingerprint) {
  auto opts = options{};
  opts.groups.front().tokens_per_block = 4;
  opts.blocks_per_chunk = 1;
  opts.tokens_per_hash = 4;
  auto keys = std::vector<chunk_key>{};
  auto digests = std::vector<std::uint64_t>{};
  for (const auto* name : {"a", "b"}) {
    opts.model_fingerprint = name;
    auto uut
      = request_keys{std::make_shared<const layout>(make_layout(opts).value())};
    uut.append(hashes(0, 1), {}, {});
    keys.push_back(uut.views()[0][0]);
    digests.push_back(uut.views()[0].ref(0).digest);
  }
  EXPECT_EQ(keys[0].hash, keys[1].hash);
  EXPECT_NE(keys[0], keys[1]);
  EXPECT_NE(digests[0], digests[1]);
}

TEST(RequestKeys, CountsTheHashesOfAChunkAcrossCalls) {
  auto uut = keys_up_to(shape_of({{4}}, 2), 1);
  EXPECT_TRUE(uut.views()[0].empty());
  uut.append(hashes(1, 2), {}, {});
  EXPECT_EQ(uut.hashes(), 2u);
  EXPECT_EQ(uut.views()[0].hash(0), hash(1));
}

TEST(RequestKeys, ForgetsKeysBeyondATruncation) {
  auto uut = keys_up_to(shape_of({{4}, {8}}), 4);
  uut.truncate(16);
  EXPECT_EQ(uut.hashes(), 4u) << "that is where it ends";
  uut.truncate(11);
  EXPECT_EQ(uut.hashes(), 2u);
  EXPECT_EQ(uut.views()[0].size(), 2u);
  EXPECT_EQ(uut.views()[1].size(), 1u);
  uut.append(hashes(100, 102), {}, {});
  EXPECT_EQ(uut.views()[0].hash(2), hash(100));
  EXPECT_EQ(uut.views()[1].hash(1), hash(101));
}

TEST(RequestKeys, EVT_01_names_the_tokens_of_a_chunk) {
  auto uut = request_keys{shape_of({{4}, {8}})};
  uut.append(hashes(0, 2), tokens{1, 2, 3, 4, 5, 6, 7, 8}, {});
  EXPECT_THAT(described(uut, 1).token_ids, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(described(uut, 0, 1).token_ids,
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  // From the first hash without tokens on there are none.
  uut.append(hashes(2, 3), {}, {});
  EXPECT_THAT(described(uut, 2).token_ids, IsEmpty());
}

TEST(RequestKeys, EVT_01_names_the_tokens_that_came_after_a_rollback) {
  auto uut = request_keys{shape_of({{4}})};
  uut.append(hashes(0, 3), tokens{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {});
  uut.truncate(8);
  uut.append(hashes(7, 8), tokens{21, 22, 23, 24}, {});
  EXPECT_THAT(described(uut, 2).token_ids, ElementsAre(21, 22, 23, 24));
}

TEST(RequestKeys, EVT_01_names_no_tokens_that_it_was_never_told) {
  auto uut = request_keys{shape_of({{4}})};
  uut.append(hashes(0, 1), tokens{1, 2, 3, 4}, {});
  uut.append(hashes(1, 3), {}, {});
  uut.append(hashes(3, 4), tokens{13, 14, 15, 16}, {});
  EXPECT_THAT(described(uut, 1).token_ids, IsEmpty());
  EXPECT_THAT(described(uut, 3).token_ids, IsEmpty());
  uut.truncate(8);
  EXPECT_THAT(described(uut, 0).token_ids, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(described(uut, 1).token_ids, IsEmpty());
}

TEST(RequestKeys, EVT_01_names_what_the_first_chunk_follows) {
  auto uut = request_keys{shape_of({{4}, {4}})};
  uut.append({}, {}, hash(77));
  uut.append(hashes(0, 2), {}, {});
  const auto first = described(uut, 0, 1);
  ASSERT_NE(first.parent, nullptr);
  EXPECT_EQ(first.parent->hash, hash(77));
  EXPECT_EQ(first.parent->group, 1u);
  EXPECT_EQ(described(uut, 1).parent, nullptr);
}

} // namespace
} // namespace kvtide::core
