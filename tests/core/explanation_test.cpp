// SPDX-License-Identifier: Apache-2.0

#include "core/explanation.hpp"
#include "tests/core/search_world.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace kvtide::core {
namespace {

explanation explained(search_world& world) {
  return explain_search(world.shape(), safe_rules, world.pool(), true,
                        world.in());
}

/// A full group with chunks of 4, and a window of 8 with chunks of 8.
std::vector<group_options> uneven() {
  return {{4, 0, false}, {8, 8, false}};
}

TEST(Explanation, NamesTheFirstChunkThatIsNotThere) {
  auto world = search_world{search_layout({{4, 0, false}}), safe_rules, 17};
  world.put_range(0, 0, 2);
  world.put(0, 3);
  const auto what = explained(world);
  EXPECT_EQ(what.tokens, 8);
  EXPECT_EQ(what.reason, miss_reason::absent);
  EXPECT_EQ(what.chunk, 2u);
}

TEST(Explanation, NamesTheGroupWhoseWindowIsNotThere) {
  auto world = search_world{search_layout(uneven()), safe_rules, 17};
  world.put_range(0, 0, 4);
  world.put(1, 1);
  auto what = explained(world);
  EXPECT_EQ(what.tokens, 16) << "chunk 0 is outside of the window";
  EXPECT_EQ(what.reason, miss_reason::none);
  world.in().known = 15;
  what = explained(world);
  EXPECT_EQ(what.tokens, 0);
  EXPECT_EQ(what.reason, miss_reason::absent);
  EXPECT_EQ(what.group, 1u);
  EXPECT_EQ(what.chunk, 0u);
}

// R4
TEST(Explanation, NamesTheHoleInAWindow) {
  auto world = search_world{search_layout(uneven()), safe_rules, 17};
  world.put_range(0, 0, 4);
  world.put(1, 0);
  world.put(1, 1, 12);
  const auto what = explained(world);
  EXPECT_EQ(what.reason, miss_reason::window_hole);
  EXPECT_EQ(what.group, 1u);
  EXPECT_EQ(what.chunk, 1u);
  EXPECT_EQ(what.chunks[1][1], chunk_state::partial);
}

// R14
TEST(Explanation, NamesTheChunkThatADraftGroupDrops) {
  auto world = search_world{search_layout({{4, 0, true}}), safe_rules, 9};
  world.put_range(0, 0, 2);
  const auto what = explained(world);
  EXPECT_EQ(what.tokens, 4);
  EXPECT_EQ(what.reason, miss_reason::draft);
  EXPECT_EQ(what.chunk, 1u);
}

TEST(Explanation, TellsWhoWaitsForAStoreFromWhoWaitsForALoad) {
  auto world = search_world{search_layout({{4, 0, false}}), safe_rules, 17};
  world.put(0, 0);
  world.begin_store(0, 1);
  EXPECT_EQ(explained(world).tokens, std::nullopt);
  EXPECT_EQ(explained(world).reason, miss_reason::writing);
  EXPECT_EQ(explained(world).chunk, 1u);
  world.pool().complete_store(std::vector{world.key(0, 1)}, true);
  (void)world.pool().prepare_load(std::vector{world.key(0, 0)}, true);
  EXPECT_EQ(explained(world).reason, miss_reason::loading);
  EXPECT_EQ(explained(world).chunk, 0u);
}

TEST(Explanation, PutsWhatStandsBeforeThePoolFirst) {
  EXPECT_EQ(first_of({}), miss_reason::none);
  EXPECT_EQ(first_of({true, true, true, true, true, true}),
            miss_reason::asleep);
  EXPECT_EQ(first_of({false, true, true, true, true, true}),
            miss_reason::own_jobs);
  EXPECT_EQ(first_of({false, false, true, true, true, true}),
            miss_reason::request_lost);
  EXPECT_EQ(first_of({false, false, false, true, true, true}),
            miss_reason::no_read);
  EXPECT_EQ(first_of({false, false, false, false, true, true}),
            miss_reason::rank_away);
  EXPECT_EQ(first_of({false, false, false, false, false, true}),
            miss_reason::cache_lost);
}

TEST(Explanation, HasAnotherNameAndSentenceForEachReason) {
  const auto shape = search_layout({{4, 0, false}});
  auto names = std::vector<std::string>{};
  auto texts = names;
  for (auto i = 0; i <= static_cast<int>(miss_reason::draft); ++i) {
    const auto reason = static_cast<miss_reason>(i);
    auto found = explanation{};
    found.reason = reason;
    auto out = explain_answer{};
    conclude(shape, miss_reason::none, found, out);
    EXPECT_EQ(out.reason, reason);
    EXPECT_NE(out.text, "");
    for (const auto& other : names)
      EXPECT_NE(other, to_string(reason));
    for (const auto& other : texts)
      EXPECT_NE(other, out.text);
    names.emplace_back(to_string(reason));
    texts.push_back(out.text);
  }
  EXPECT_STREQ(to_string(static_cast<miss_reason>(99)), "unknown reason");
  EXPECT_STREQ(to_string(chunk_state::partial), "partial");
  EXPECT_STREQ(to_string(static_cast<chunk_state>(99)), "unknown chunk state");
}

std::unique_ptr<search_world> any_world() {
  auto groups = std::vector<group_options>{};
  const auto count = *rc::gen::inRange(1, 4);
  for (auto at = 0; at < count; ++at)
    groups.push_back({*rc::gen::element(4, 8, 16),
                      *rc::gen::element(0, 0, 3, 4, 8, 13, 16),
                      *rc::gen::arbitrary<bool>()});
  auto out = std::make_unique<search_world>(
    search_layout(groups), safe_rules, *rc::gen::inRange<token_count>(0, 60));
  for (group_id g = 0; g < groups.size(); ++g)
    for (std::uint32_t chunk = 0; chunk < out->in().keys[g].size(); ++chunk) {
      const auto dice = *rc::gen::inRange(0, 12);
      const auto start
        = token_count{chunk} * out->shape().groups[g].chunk_tokens;
      if (dice == 1)
        out->begin_store(g, chunk);
      else if (dice == 2)
        out->put(g, chunk, start + 2);
      else if (dice > 2)
        out->put(g, chunk);
      if (dice == 3)
        (void)out->pool().prepare_load(std::vector{search_world::key(g, chunk)},
                                       true);
    }
  out->in().local = *rc::gen::inRange<token_count>(0, 20);
  out->in().ignore_pending = *rc::gen::arbitrary<bool>();
  return out;
}

RC_GTEST_PROP(ExplanationProperty, PredictsTheNextSearchAndChangesNothing, ()) {
  const auto world = any_world();
  const auto before = world->pool().state();
  const auto what = explained(*world);
  const auto after = world->pool().state();
  RC_ASSERT(after.lru == before.lru);
  RC_ASSERT(after.busy == before.busy);
  RC_ASSERT(after.writing == before.writing);
  RC_ASSERT(after.held == before.held);
  RC_ASSERT(what.tokens == world->run());
}

RC_GTEST_PROP(ExplanationProperty, BlamesAChunkOnlyForWhatItIs, ()) {
  const auto world = any_world();
  const auto what = explained(*world);
  const auto state = [&] { return what.chunks.at(what.group).at(what.chunk); };
  switch (what.reason) {
    case miss_reason::absent:
      return RC_ASSERT(state() == chunk_state::absent);
    case miss_reason::writing:
      return RC_ASSERT(state() == chunk_state::writing);
    case miss_reason::loading:
      RC_ASSERT(!what.tokens);
      return RC_ASSERT(state() == chunk_state::loading);
    case miss_reason::window_hole:
      return RC_ASSERT(state() == chunk_state::partial);
    case miss_reason::draft:
      return RC_ASSERT(world->shape().groups.at(what.group).draft);
    default:
      RC_ASSERT(what.tokens.has_value());
  }
}

} // namespace
} // namespace kvtide::core
