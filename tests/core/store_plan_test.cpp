// SPDX-License-Identifier: Apache-2.0

#include "core/store_plan.hpp"
#include "tests/core/plan_shapes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::core {
namespace {

using ids = std::vector<block_id>;
using lists = std::vector<ids>;

/// What a request has to store.
struct stock {
  explicit stock(std::shared_ptr<const layout> layout,
                 token_count prompt_tokens = 1'000,
                 const rules& rules_ = safe_rules)
    : shape(std::move(layout)), prompt(prompt_tokens), rule(rules_),
      held(shape), tables(shape->groups.size()) {
    // nop
  }

  stock& keys(std::uint32_t to) {
    held.append(hashes(static_cast<std::uint32_t>(held.hashes()), to), {}, {});
    return *this;
  }

  stock& blocks(const lists& appended) {
    for (group_id g = 0; g < appended.size(); ++g)
      tables.append(g, appended[g]);
    return *this;
  }

  [[nodiscard]] store_plan plan_of(token_count wanted,
                                   const std::vector<std::size_t>& next) const {
    return plan_store(*shape, rule, {prompt, held.views(), tables}, wanted,
                      next);
  }

  /// A line per candidate.
  [[nodiscard]] std::vector<std::string>
  plan(token_count wanted, const std::vector<std::size_t>& next) const {
    auto out = std::vector<std::string>{};
    const auto made = plan_of(wanted, next);
    for (const auto& x : made.candidates)
      out.push_back(row_text(x.chunk, x.key.group, x.blocks));
    return out;
  }

  std::shared_ptr<const layout> shape;
  token_count prompt;
  const rules& rule;
  request_keys held;
  block_tables tables;
};

TEST(StorePlan, OffersGroupsInOrderAndChunksAscending) {
  auto it = stock{shape_of({{4}, {8}})};
  it.keys(4).blocks({{1, 2, 3, 4}, {11, 12}});
  EXPECT_THAT(it.plan(16, {0, 0}), ElementsAre("0/0 1", "1/0 2", "2/0 3",
                                               "3/0 4", "0/1 11", "1/1 12"));
  EXPECT_THAT(it.plan(12, {1, 0}), ElementsAre("1/0 2", "2/0 3", "0/1 11"));
}

TEST(StorePlan, BecomesARowForEachChunkThatIsGranted) {
  auto it = stock{shape_of({{4}})};
  it.keys(3).blocks({{1, 2, 3}});
  auto plan = it.plan_of(12, {0});
  auto grant = store_grant{};
  grant.accepted = {{0, 7}, {2, 5}};
  const auto rows = rows_of(grant, plan.candidates);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(row_text(rows[0].chunk, rows[0].key.group, rows[0].blocks),
            "0/0 1");
  EXPECT_EQ(row_text(rows[1].chunk, rows[1].key.group, rows[1].blocks),
            "2/0 3");
  EXPECT_EQ(rows[0].slot, 7u);
  EXPECT_EQ(rows[1].slot, 5u);
  EXPECT_EQ(rows[1].key, plan.candidates[2].key);
}

TEST(StorePlan, OffersNothingBeyondTheClamp) {
  auto it = stock{shape_of({{4}}, 2)};
  it.keys(9).blocks({{1, 2, 3, 4, 5}});
  EXPECT_THAT(it.plan(36, {0}), ElementsAre("0/0 1 2", "1/0 3 4"));
  EXPECT_THAT(it.plan_of(36, {0}).storable, ElementsAre(2u));
}

// FIN-01
TEST(StorePlan, OffersNothingWithoutABlockTable) {
  auto it = stock{shape_of({{4}, {4, 8}})};
  it.keys(3);
  const auto plan = it.plan_of(12, {0, 0});
  EXPECT_THAT(plan.candidates, IsEmpty());
  EXPECT_THAT(plan.storable, ElementsAre(0u, 0u));
}

TEST(StorePlan, DoesNotOfferABlockThatWasHandedToSomebodyElse) {
  auto it = stock{shape_of({{4, 8}})};
  it.keys(3).blocks({{1, 2, 3}});
  it.tables.clear(0, 1);
  EXPECT_THAT(it.plan(12, {0}), ElementsAre("0/0 1", "2/0 3"));
}

TEST(StorePlan, WithholdsTheLastChunkOfADraftGroupInDecode) {
  auto it = stock{shape_of({{4}, {4, 0, true}}), 8};
  it.keys(3).blocks({{1, 2, 3}, {11, 12, 13}});
  EXPECT_THAT(it.plan_of(8, {0, 0}).storable, ElementsAre(2u, 2u));
  EXPECT_THAT(it.plan_of(12, {0, 0}).storable, ElementsAre(3u, 2u));
}

// C1, C8: hits end only where a chunk of the full group does.
TEST(StorePlan, SkipsChunksThatNoHitReaches) {
  auto it = stock{shape_of({{16}, {4, 4}})};
  it.keys(8).blocks({{1, 2}, {11, 12, 13, 14, 15, 16, 17, 18}});
  EXPECT_THAT(it.plan(32, {0, 0}),
              ElementsAre("0/0 1", "1/0 2", "3/1 14", "7/1 18"));
  // The last stretch is shorter, and its end may become one.
  EXPECT_THAT(it.plan(24, {1, 4}), ElementsAre("5/1 16"));
}

// R4
TEST(StorePlan, OffersAChunkWithAHoleOnlyIfItsWindowIsWhole) {
  for (const auto* rule : {&reference_rules, &safe_rules}) {
    const auto safe = rule == &safe_rules;
    // 8 tokens per chunk; the window before its end covers token 1 on.
    auto wide = stock{shape_of({{4, 8}}, 2), 1'000, *rule};
    wide.keys(2).blocks({{0, 2}});
    EXPECT_EQ(wide.plan(8, {0}).size(), safe ? 0u : 1u);
    // Covers token 4 on.
    auto narrow = stock{shape_of({{4, 5}}, 2), 1'000, *rule};
    narrow.keys(2).blocks({{0, 2}});
    EXPECT_THAT(narrow.plan(8, {0}), ElementsAre("0/0 0 2"));
    EXPECT_EQ(narrow.plan_of(8, {0}).candidates[0].first_token, safe ? 4 : 0);
    // Without its last block it is never offered.
    auto open = stock{shape_of({{4, 5}}, 2), 1'000, *rule};
    open.keys(2).blocks({{1, 0}});
    EXPECT_THAT(open.plan(8, {0}), IsEmpty());
  }
}

TEST(StorePlan, IsTheSameWithoutBlocksThatNobodyAsksFor) {
  auto it = stock{shape_of({{4}, {4, 8}}, 2)};
  it.keys(6).blocks({{1, 2, 3, 4, 5, 6}, {11, 12, 13, 14, 15, 16}});
  const auto whole = it.plan(24, {1, 2});
  EXPECT_THAT(whole, ElementsAre("1/0 3 4", "2/0 5 6", "2/1 15 16"));
  it.tables.forget_before(0, 2);
  it.tables.forget_before(1, 4);
  EXPECT_EQ(it.plan(24, {1, 2}), whole);
}

// -- the clamp ----------------------------------------------------------------

RC_GTEST_PROP(StorePlan, NeverOffersMoreThanItHas, ()) {
  const auto per_chunk = *rc::gen::inRange(1, 4);
  const auto sliding = *rc::gen::arbitrary<bool>();
  auto it = stock{shape_of({{4, 0, *rc::gen::arbitrary<bool>()},
                            {4, sliding ? *rc::gen::inRange(1, 30) : 0, false}},
                           per_chunk),
                  *rc::gen::inRange<token_count>(0, 60),
                  *rc::gen::arbitrary<bool>() ? safe_rules : reference_rules};
  it.keys(*rc::gen::inRange<std::uint32_t>(0, 30));
  auto tables = lists(2);
  for (auto& table : tables)
    table = *rc::gen::container<ids>(*rc::gen::inRange<std::size_t>(0, 40),
                                     rc::gen::inRange<block_id>(0, 5));
  it.blocks(tables);
  const auto wanted = *rc::gen::inRange<token_count>(0, 200);
  const auto next = std::vector<std::size_t>{
    *rc::gen::inRange<std::size_t>(0, 6), *rc::gen::inRange<std::size_t>(0, 6)};
  const auto plan = it.plan_of(wanted, next);
  for (const auto& x : plan.candidates) {
    const auto& table = tables[x.key.group];
    const auto first = x.chunk * static_cast<std::size_t>(per_chunk);
    RC_ASSERT(x.chunk >= next[x.key.group]);
    RC_ASSERT(x.chunk < plan.storable[x.key.group]);
    RC_ASSERT(x.end_tokens <= wanted);
    RC_ASSERT(first + static_cast<std::size_t>(per_chunk) <= table.size());
    RC_ASSERT(x.blocks.back() != no_block);
    for (std::size_t j = 0; j < x.blocks.size(); ++j)
      RC_ASSERT(x.blocks[j] == no_block || x.blocks[j] == table[first + j]);
  }
}

} // namespace
} // namespace kvtide::core
