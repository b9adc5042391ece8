// SPDX-License-Identifier: Apache-2.0

#include "core/layout.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::core {
namespace {

/// One block is 4 tokens, one chunk 2 blocks, one hash 4 tokens.
options small_options(std::vector<group_options> groups) {
  auto out = options{};
  out.groups = std::move(groups);
  out.blocks_per_chunk = 2;
  out.tokens_per_hash = 4;
  return out;
}

layout must_make(const options& opts) {
  auto out = make_layout(opts);
  EXPECT_TRUE(out.ok());
  return std::move(out).value();
}

TEST(Layout, DerivesTheNumbersOfAFullAttentionGroup) {
  const auto uut = must_make(small_options({{4, 0, true}}));
  ASSERT_EQ(uut.groups.size(), 1u);
  EXPECT_EQ(uut.blocks_per_chunk, 2u);
  EXPECT_EQ(uut.hash_tokens, 4);
  EXPECT_EQ(uut.groups[0].block_tokens, 4);
  EXPECT_EQ(uut.groups[0].chunk_tokens, 8);
  EXPECT_EQ(uut.groups[0].hashes_per_chunk, 2u);
  EXPECT_EQ(uut.groups[0].window_chunks, 0u);
  EXPECT_FALSE(uut.groups[0].sliding());
  EXPECT_TRUE(uut.groups[0].draft);
  EXPECT_FALSE(uut.any_sliding);
}

TEST(Layout, RoundsTheWindowUpToWholeChunks) {
  const auto uut = must_make(small_options({{4, 8, false}, {4, 9, false}}));
  EXPECT_EQ(uut.groups[0].window_chunks, 1u);
  EXPECT_EQ(uut.groups[1].window_chunks, 2u);
  EXPECT_TRUE(uut.any_sliding);
}

TEST(Layout, SearchesFullGroupsFirstThenFromWideToNarrow) {
  const auto uut = must_make(small_options({{4, 8, false},
                                            {4, 0, false},
                                            {4, 40, false},
                                            {8, 0, false},
                                            {4, 5, false}}));
  EXPECT_EQ(uut.search_order, (std::vector<group_id>{1, 3, 2, 0, 4}));
}

TEST(Layout, HasASegmentOnlyWhereAFullChunkHoldsSeveralNarrowWindows) {
  // Chunks of 32 and 8 tokens: 4 to 1; windows of 2 and 4 chunks.
  const auto uut = must_make(
    small_options({{16, 0, false}, {4, 16, false}, {4, 32, false}}));
  EXPECT_EQ(uut.groups[0].segment, 0u);
  EXPECT_EQ(uut.groups[1].segment, 4u);
  EXPECT_EQ(uut.groups[2].segment, 0u);
}

TEST(Layout, HasNoSegmentIfFullGroupsDisagreeOrAreMissing) {
  const auto mixed
    = must_make(small_options({{16, 0, false}, {8, 0, false}, {4, 8, false}}));
  EXPECT_EQ(mixed.groups[2].segment, 0u);
  const auto alone = must_make(small_options({{16, 64, false}, {4, 8, false}}));
  EXPECT_EQ(alone.groups[1].segment, 0u);
}

TEST(Layout, TellsModelsApart) {
  auto opts = small_options({{4, 0, false}});
  opts.model_fingerprint = "a";
  const auto first = must_make(opts).model;
  EXPECT_EQ(must_make(opts).model, first);
  opts.model_fingerprint = "b";
  EXPECT_NE(must_make(opts).model, first);
}

TEST(Layout, AcceptsTheDefaultOptions) {
  EXPECT_TRUE(make_layout(options{}).ok());
}

TEST(Layout, RefusesEachNumberOutOfRangeWithASentenceThatNamesIt) {
  using namespace std::chrono_literals;
  using change = void (*)(options&);
  const auto cases = std::vector<std::pair<std::string, change>>{
    {"groups", [](options& x) { x.groups.clear(); }},
    {"tokens_per_block", [](options& x) { x.groups[0].tokens_per_block = 0; }},
    {"sliding_window_tokens",
     [](options& x) { x.groups[0].sliding_window_tokens = -1; }},
    {"blocks_per_chunk", [](options& x) { x.blocks_per_chunk = 0; }},
    {"tokens_per_hash", [](options& x) { x.tokens_per_hash = 0; }},
    {"multiple of tokens_per_hash", [](options& x) { x.tokens_per_hash = 3; }},
    {"ranks", [](options& x) { x.ranks = 0; }},
    {"ranks", [](options& x) { x.ranks = 65; }},
    {"store_threshold", [](options& x) { x.store_threshold = 0; }},
    {"promise_steps", [](options& x) { x.promise_steps = 0; }},
    {"max_store_jobs", [](options& x) { x.max_store_jobs = 0; }},
    {"actor_threads", [](options& x) { x.actor_threads = 0; }},
    {"actor_threads", [](options& x) { x.actor_threads = 257; }},
    {"rules", [](options& x) { x.rules = static_cast<rule_set>(3); }},
    {"policy", [](options& x) { x.policy = static_cast<eviction_policy>(2); }},
    {"delivery",
     [](options& x) { x.delivery = static_cast<plan_delivery>(2); }},
    {"device", [](options& x) { x.device = static_cast<device_kind>(3); }},
    {"order_checks",
     [](options& x) { x.order_checks = static_cast<order_checks>(3); }},
    {"job_deadline", [](options& x) { x.job_deadline = 0ms; }},
    {"idle_delay", [](options& x) { x.idle_delay = -1ms; }},
    {"copy_latency", [](options& x) { x.copy_latency = -1us; }},
    {"job_deadline",
     [](options& x) { x.job_deadline = std::chrono::milliseconds::max(); }},
    {"idle_delay",
     [](options& x) { x.idle_delay = std::chrono::milliseconds::max(); }},
    {"copy_latency",
     [](options& x) { x.copy_latency = std::chrono::microseconds::max(); }},
    {"chunk",
     [](options& x) {
       x.groups.front().tokens_per_block = 1 << 30;
       x.blocks_per_chunk = 1 << 30;
     }},
  };
  for (const auto& [word, make_wrong] : cases) {
    auto opts = small_options({{4, 0, false}});
    make_wrong(opts);
    const auto made = make_layout(opts);
    ASSERT_FALSE(made.ok()) << word;
    EXPECT_EQ(made.failure().code, ec::invalid_options);
    EXPECT_NE(made.failure().text.find(word), std::string::npos)
      << made.failure().text;
    EXPECT_EQ(made.failure().text.back(), '.');
  }
}

TEST(Layout, AcceptsEachNumberAtItsLimit) {
  using namespace std::chrono_literals;
  constexpr void (*limits[])(options&) = {
    [](options& x) { x.blocks_per_chunk = 1; },
    [](options& x) { x.tokens_per_hash = 1; },
    [](options& x) { x.ranks = 1; },
    [](options& x) { x.ranks = 64; },
    [](options& x) { x.store_threshold = 1; },
    [](options& x) { x.promise_steps = 1; },
    [](options& x) { x.max_store_jobs = 1; },
    [](options& x) { x.max_deferrals = 0; },
    [](options& x) { x.store_retries = 0; },
    [](options& x) { x.actor_threads = 1; },
    [](options& x) { x.actor_threads = 256; },
    [](options& x) { x.job_deadline = 1ms; },
    [](options& x) { x.job_deadline = longest_wait; },
    [](options& x) { x.idle_delay = 0ms; },
    [](options& x) { x.idle_delay = longest_wait; },
    [](options& x) { x.copy_latency = 0us; },
    [](options& x) { x.copy_latency = longest_wait; },
  };
  for (std::size_t i = 0; i < std::size(limits); ++i) {
    auto opts = small_options({{4, 0, false}});
    limits[i](opts);
    const auto made = make_layout(opts);
    EXPECT_TRUE(made.ok()) << i << ": " << made.failure().text;
  }
}

RC_GTEST_PROP(Layout, KeepsTheDefinitionsOfSchema2, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 5);
  auto groups = std::vector<group_options>{};
  for (std::size_t at = 0; at < count; ++at)
    groups.push_back({*rc::gen::inRange(1, 9) * 4, *rc::gen::inRange(0, 50),
                      *rc::gen::arbitrary<bool>()});
  const auto made = make_layout(small_options(groups));
  RC_ASSERT(made.ok());
  const auto& uut = made.value();
  auto seen = std::vector<int>(count);
  for (const auto group : uut.search_order)
    ++seen[group];
  for (std::size_t at = 0; at < count; ++at) {
    const auto& group = uut.groups[at];
    const auto win = static_cast<token_count>(group.window_chunks);
    RC_ASSERT(seen[at] == 1);
    RC_ASSERT(group.chunk_tokens == group.block_tokens * 2);
    RC_ASSERT(win * group.chunk_tokens >= group.window_tokens);
    RC_ASSERT((win - 1) * group.chunk_tokens < group.window_tokens
              || !group.sliding());
    RC_ASSERT(group.segment == 0
              || (group.sliding() && group.window_chunks < group.segment));
  }
}

} // namespace
} // namespace kvtide::core
