// SPDX-License-Identifier: Apache-2.0

#include "core/search.hpp"
#include "tests/core/search_world.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace kvtide::core {
namespace {

/// Chunks have 4 tokens unless a test says otherwise.
const auto full = group_options{4, 0, false};
const auto full_draft = group_options{4, 0, true};

group_options sliding(int window, bool draft = false) {
  return {4, window, draft};
}

TEST(Search, FindsTheLeadingChunksOfAFullAttentionGroup) {
  auto uut = search_world{search_layout({full}), reference_rules, 21};
  EXPECT_EQ(uut.run(), 0);
  uut.put_range(0, 0, 3);
  uut.put(0, 4);
  EXPECT_EQ(uut.run(), 12);
  uut.in().local = 6;
  EXPECT_EQ(uut.run(), 6);
  uut.in().local = 12;
  EXPECT_EQ(uut.run(), 0);
}

TEST(Search, GivesUpTheLastTokenWithASlidingGroup) {
  auto uut
    = search_world{search_layout({full, sliding(8)}), reference_rules, 16};
  uut.put_range(0, 0, 4);
  uut.put_range(1, 0, 4);
  EXPECT_EQ(uut.run(), 15);
}

TEST(Search, NeedsOnlyTheWindowOfASlidingGroup) {
  auto uut
    = search_world{search_layout({full, sliding(8)}), reference_rules, 21};
  uut.put_range(0, 0, 5);
  uut.put_range(1, 2, 4);
  EXPECT_EQ(uut.run(), 16);
}

TEST(Search, Hyb01FindsAWindowOfOneChunkWithoutADraftGroup) {
  for (const auto* rule : {&reference_rules, &safe_rules}) {
    auto uut = search_world{search_layout({full, sliding(4)}), *rule, 17};
    uut.put_range(0, 0, 4);
    uut.put(1, 3);
    EXPECT_EQ(uut.run(), 16);
  }
}

TEST(Search, Hyb01WidensADraftGroupBeforeItDropsAChunk) {
  // R14: under reference rules the chunk is dropped from what was found.
  for (const auto* rule : {&reference_rules, &safe_rules}) {
    auto uut = search_world{search_layout({full, full_draft}), *rule, 21};
    uut.put_range(0, 0, 4);
    uut.put_range(1, 0, 5);
    EXPECT_EQ(uut.run(), rule->draft_search_goes_further ? 16 : 12);
  }
}

TEST(Search, R14DropsAChunkWhereNoKeyFollows) {
  auto uut = search_world{search_layout({full_draft}), safe_rules, 18};
  uut.put_range(0, 0, 4);
  EXPECT_EQ(uut.run(), 12);
}

TEST(Search, DefersWhileAChunkIsBeingWritten) {
  auto uut = search_world{search_layout({full}), safe_rules, 17};
  uut.put_range(0, 0, 2);
  uut.begin_store(0, 2);
  EXPECT_EQ(uut.run(), std::nullopt);
  uut.pool().complete_store(std::vector{search_world::key(0, 2)}, true);
  EXPECT_EQ(uut.run(), 12);
}

TEST(Search, Liv01AnswersTheReadyPrefixWhenPendingIsIgnored) {
  auto uut = search_world{search_layout({full}), safe_rules, 17};
  uut.put_range(0, 0, 2);
  uut.begin_store(0, 2);
  uut.put(0, 3);
  uut.in().ignore_pending = true;
  EXPECT_EQ(uut.run(), 8);
}

TEST(Search, DefersWhileAChunkIsBeingLoadedUnlessPendingIsIgnored) {
  auto uut = search_world{search_layout({full}), safe_rules, 17};
  uut.put_range(0, 0, 2);
  const auto loading = std::vector{search_world::key(0, 1)};
  ASSERT_TRUE(uut.pool().prepare_load(loading, true).ok());
  EXPECT_EQ(uut.run(), std::nullopt);
  uut.in().ignore_pending = true;
  EXPECT_EQ(uut.run(), 8);
  uut.in().ignore_pending = false;
  uut.pool().complete_load(loading);
  EXPECT_EQ(uut.run(), 8);
}

// The full attention group ends the hit at 20, in the middle of the sliding
// group's chunk 2. One chunk is as wide as the window, so that the scan is
// content with it; but the load also reads tokens 13 to 15, in chunk 1.
TEST(Search, R13LowersAHitThatTheLastRunDoesNotCover) {
  for (const auto* rule : {&reference_rules, &safe_rules}) {
    auto uut = search_world{search_layout({full, {8, 8, false}}), *rule, 25};
    uut.put_range(0, 0, 5);
    uut.put(1, 0);
    uut.put(1, 2);
    EXPECT_EQ(uut.run(), rule->search_verifies_load ? 8 : 20);
  }
}

TEST(Search, R13DefersIfOnlyTheLoadMeetsAChunkThatIsBeingWritten) {
  for (const auto ignore_pending : {false, true}) {
    auto uut
      = search_world{search_layout({full, {8, 8, false}}), safe_rules, 25};
    uut.put_range(0, 0, 5);
    uut.put(1, 0);
    uut.begin_store(1, 1);
    uut.put(1, 2);
    uut.in().ignore_pending = ignore_pending;
    EXPECT_EQ(uut.run(),
              ignore_pending ? std::optional<token_count>{8} : std::nullopt);
  }
}

TEST(Search, R4LowersAHitWhoseWindowHasAHole) {
  // A hit at 12 needs tokens 5 to 11, and chunk 1 holds tokens 6 and 7.
  auto uut = search_world{search_layout({sliding(8)}), safe_rules, 13};
  uut.put(0, 0);
  uut.put(0, 1, 6);
  uut.put(0, 2);
  EXPECT_EQ(uut.run(), 4);
}

TEST(Search, R4UsesAChunkWithAHoleBelowTheWindow) {
  auto uut = search_world{search_layout({sliding(8)}), safe_rules, 13};
  uut.put(0, 1, 5);
  uut.put(0, 2);
  EXPECT_EQ(uut.run(), 12);
}

TEST(Search, R4UsesAHoleThatTheDeviceCovers) {
  auto uut = search_world{search_layout({sliding(8)}), safe_rules, 13};
  uut.put(0, 1, 6);
  uut.put(0, 2);
  uut.in().local = 6;
  EXPECT_EQ(uut.run(), 6);
}

TEST(Search, R16LeavesOneTokenToCompute) {
  for (const auto* rule : {&reference_rules, &safe_rules}) {
    auto uut = search_world{search_layout({full}), *rule, 16};
    uut.put_range(0, 0, 4);
    EXPECT_EQ(uut.run(), rule->leave_one_token ? 15 : 16);
    uut.in().local = 8;
    EXPECT_EQ(uut.run(), rule->leave_one_token ? 7 : 8);
  }
}

TEST(Search, SaysWhatALoadReads) {
  auto uut = search_world{search_layout({full, sliding(8)}), safe_rules, 21};
  uut.in().local = 5;
  EXPECT_EQ(uut.reads(0, 11).first, 1u);
  EXPECT_EQ(uut.reads(0, 11).last, 4u);
  EXPECT_EQ(uut.reads(1, 11).first, 2u);
  EXPECT_EQ(uut.reads(1, 11).last, 4u);
  EXPECT_EQ(uut.reads(1, 0).last, 0u);
}

TEST(Search, CountsEveryLookOfAScanAsAUse) {
  auto pool = host_pool{{4, eviction_policy::lru, 2, {}}, safe_rules};
  const auto shape = search_layout({full});
  auto uut = hit_search{shape, safe_rules, pool, true};
  const auto keys = std::vector{view_of(numbered("", 2))};
  const auto in = search_input{keys, 0, 9, false};
  const auto offer = offer_of(std::vector{keys[0][0]});
  EXPECT_EQ(uut.run(in), 0);
  EXPECT_TRUE(pool.prepare_store(offer).accepted.empty());
  EXPECT_EQ(uut.run(in), 0);
  EXPECT_EQ(pool.prepare_store(offer).accepted.size(), 1u);
}

} // namespace
} // namespace kvtide::core
