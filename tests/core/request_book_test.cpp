// SPDX-License-Identifier: Apache-2.0

#include "core/request_book.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <string>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::core {
namespace {

using ids = std::vector<block_id>;
using lists = std::vector<ids>;
using marks = std::vector<std::vector<std::uint8_t>>;

struct group_spec {
  std::int32_t tokens_per_block = 4;
  std::int32_t window = 0;
  bool draft = false;
};

std::shared_ptr<const layout> shape_of(std::vector<group_spec> groups,
                                       std::int32_t blocks_per_chunk = 1) {
  auto opts = options{};
  opts.groups.clear();
  for (const auto& x : groups)
    opts.groups.push_back({x.tokens_per_block, x.window, x.draft});
  opts.blocks_per_chunk = blocks_per_chunk;
  opts.tokens_per_hash = 4;
  return std::make_shared<const layout>(make_layout(opts).value());
}

std::vector<prefix_hash> hashes(std::uint32_t from, std::uint32_t to) {
  auto out = std::vector<prefix_hash>{};
  for (auto x = from; x < to; ++x)
    out.emplace_back(&x, sizeof(x));
  return out;
}

prefix_hash hash(std::uint32_t number) {
  return {&number, sizeof(number)};
}

class book_of {
public:
  explicit book_of(std::shared_ptr<const layout> layout,
                   token_count prompt = 1'000, const rules& rule = safe_rules)
    : shape(std::move(layout)), book(shape, rule, prompt) {
    // nop
  }

  book_of& keys(std::uint32_t to) {
    auto update = request_update{};
    update.hashes = hashes(known_, to);
    known_ = to;
    book.apply(update);
    return *this;
  }

  book_of& blocks(lists appended) {
    auto update = request_update{};
    update.appended = std::move(appended);
    book.apply(update);
    return *this;
  }

  /// "chunk/group [blocks]" per candidate.
  std::vector<std::string> plan(token_count wanted,
                                std::vector<std::size_t> next) const {
    auto out = std::vector<std::string>{};
    const auto plan = book.plan_store(wanted, next);
    for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
      auto line = std::to_string(plan.candidates[i].chunk) + "/"
                + std::to_string(plan.candidates[i].key.group);
      for (auto block : plan.blocks[i])
        line.append(1, ' ').append(std::to_string(block));
      out.push_back(line);
    }
    return out;
  }

  std::shared_ptr<const layout> shape;
  request_book book;

private:
  std::uint32_t known_ = 0;
};

// -- keys ---------------------------------------------------------------------

TEST(RequestBook, TakesTheLastHashOfAChunkAsItsKey) {
  auto it = book_of{shape_of({{4}, {8}}, 2)};
  it.keys(4);
  const auto views = it.book.views();
  ASSERT_EQ(views.size(), 2u);
  ASSERT_EQ(views[0].size(), 2u);
  EXPECT_EQ(views[0].hash(0), hash(1));
  EXPECT_EQ(views[0].hash(1), hash(3));
  ASSERT_EQ(views[1].size(), 1u);
  EXPECT_EQ(views[1].hash(0), hash(3));
  EXPECT_EQ(views[1][0].group, 1u);
}

TEST(RequestBook, ForgetsKeysBeyondATruncation) {
  auto it = book_of{shape_of({{4}, {8}})};
  it.keys(4);
  it.book.truncate(11);
  EXPECT_EQ(it.book.views()[0].size(), 2u);
  EXPECT_EQ(it.book.views()[1].size(), 1u);
  auto update = request_update{};
  update.hashes = hashes(100, 102);
  it.book.apply(update);
  EXPECT_EQ(it.book.views()[0].hash(2), hash(100));
  EXPECT_EQ(it.book.views()[1].hash(1), hash(101));
}

// -- stores -------------------------------------------------------------------

TEST(RequestBook, OffersGroupsInOrderAndChunksAscending) {
  auto it = book_of{shape_of({{4}, {8}})};
  it.keys(4).blocks({{1, 2, 3, 4}, {11, 12}});
  EXPECT_THAT(it.plan(16, {0, 0}), ElementsAre("0/0 1", "1/0 2", "2/0 3",
                                               "3/0 4", "0/1 11", "1/1 12"));
  EXPECT_THAT(it.plan(12, {1, 0}), ElementsAre("1/0 2", "2/0 3", "0/1 11"));
}

TEST(RequestBook, OffersNothingBeyondTheClamp) {
  auto it = book_of{shape_of({{4}}, 2)};
  it.keys(9).blocks({{1, 2, 3, 4, 5}});
  EXPECT_THAT(it.plan(36, {0}), ElementsAre("0/0 1 2", "1/0 3 4"));
  EXPECT_THAT(it.book.plan_store(36, {0}).storable, ElementsAre(2u));
}

// FIN-01
TEST(RequestBook, OffersNothingWithoutABlockTable) {
  auto it = book_of{shape_of({{4}, {4, 8}})};
  it.keys(3);
  const auto plan = it.book.plan_store(12, {0, 0});
  EXPECT_THAT(plan.candidates, IsEmpty());
  EXPECT_THAT(plan.storable, ElementsAre(0u, 0u));
}

TEST(RequestBook, EmptiesItsTablesBeforeItAppends) {
  auto it = book_of{shape_of({{4}})};
  it.keys(3).blocks({{1, 2, 3}});
  auto update = request_update{};
  update.empty_tables = true;
  update.appended = {{7, 8}};
  it.book.apply(update);
  EXPECT_THAT(it.plan(12, {0}), ElementsAre("0/0 7", "1/0 8"));
}

TEST(RequestBook, DoesNotOfferABlockThatWasHandedToSomebodyElse) {
  auto it = book_of{shape_of({{4, 8}})};
  it.keys(3).blocks({{1, 2, 3}});
  auto update = request_update{};
  update.cleared = {{0, 1}};
  it.book.apply(update);
  EXPECT_THAT(it.plan(12, {0}), ElementsAre("0/0 1", "2/0 3"));
}

TEST(RequestBook, WithholdsTheLastChunkOfADraftGroupInDecode) {
  auto it = book_of{shape_of({{4}, {4, 0, true}}), 8};
  it.keys(3).blocks({{1, 2, 3}, {11, 12, 13}});
  EXPECT_THAT(it.book.plan_store(8, {0, 0}).storable, ElementsAre(2u, 2u));
  EXPECT_THAT(it.book.plan_store(12, {0, 0}).storable, ElementsAre(3u, 2u));
}

// SCHEMA 4.5.3: hits end only where a chunk of the full group does.
TEST(RequestBook, SkipsChunksThatNoHitReaches) {
  auto it = book_of{shape_of({{16}, {4, 4}})};
  it.keys(8).blocks({{1, 2}, {11, 12, 13, 14, 15, 16, 17, 18}});
  EXPECT_THAT(it.plan(32, {0, 0}),
              ElementsAre("0/0 1", "1/0 2", "3/1 14", "7/1 18"));
  // The last stretch is shorter, and its end may become one.
  EXPECT_THAT(it.plan(24, {1, 4}), ElementsAre("5/1 16"));
}

// R4
TEST(RequestBook, OffersAChunkWithAHoleOnlyIfItsWindowIsWhole) {
  for (const auto* rule : {&reference_rules, &safe_rules}) {
    const auto safe = rule == &safe_rules;
    // 8 tokens per chunk; the window before its end covers token 1 on.
    auto wide = book_of{shape_of({{4, 8}}, 2), 1'000, *rule};
    wide.keys(2).blocks({{0, 2}});
    EXPECT_EQ(wide.plan(8, {0}).size(), safe ? 0u : 1u);
    // Covers token 4 on.
    auto narrow = book_of{shape_of({{4, 5}}, 2), 1'000, *rule};
    narrow.keys(2).blocks({{0, 2}});
    EXPECT_THAT(narrow.plan(8, {0}), ElementsAre("0/0 0 2"));
    EXPECT_EQ(narrow.book.plan_store(8, {0}).candidates[0].first_token,
              safe ? 4 : 0);
    // Without its last block it is never offered.
    auto open = book_of{shape_of({{4, 5}}, 2), 1'000, *rule};
    open.keys(2).blocks({{1, 0}});
    EXPECT_THAT(open.plan(8, {0}), IsEmpty());
  }
}

// EVT-01
TEST(RequestBook, NamesTheTokensOfAChunk) {
  auto it = book_of{shape_of({{4}})};
  auto update = request_update{};
  update.hashes = hashes(0, 2);
  update.token_ids = {1, 2, 3, 4, 5, 6, 7, 8};
  update.appended = {{1, 2, 3}};
  it.book.apply(update);
  EXPECT_THAT(it.book.plan_store(8, {0}).candidates[1].token_ids,
              ElementsAre(5, 6, 7, 8));
  // From the first hash without tokens on there are none.
  it.book.apply({hashes(2, 3), {}, false, {}, {}, {}});
  EXPECT_THAT(it.book.plan_store(12, {0}).candidates[2].token_ids, IsEmpty());
}

// EVT-01
TEST(RequestBook, NamesTheTokensThatCameAfterARollback) {
  auto it = book_of{shape_of({{4}})};
  auto update = request_update{};
  update.hashes = hashes(0, 3);
  update.token_ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  update.appended = {{1, 2, 3}};
  it.book.apply(update);
  it.book.truncate(8);
  it.book.apply({hashes(7, 8), {21, 22, 23, 24}, false, {}, {}, {}});
  EXPECT_THAT(it.book.plan_store(12, {0}).candidates[2].token_ids,
              ElementsAre(21, 22, 23, 24));
}

// EVT-01
TEST(RequestBook, NamesNoTokensThatItWasNeverTold) {
  auto it = book_of{shape_of({{4}})};
  it.book.apply({hashes(0, 1), {1, 2, 3, 4}, false, {{1, 2, 3}}, {}, {}});
  it.book.apply({hashes(1, 3), {}, false, {}, {}, {}});
  it.book.truncate(8);
  const auto plan = it.book.plan_store(8, {0});
  EXPECT_THAT(plan.candidates[0].token_ids, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(plan.candidates[1].token_ids, IsEmpty());
}

// -- loads --------------------------------------------------------------------

/// "chunk/group [blocks]" per row, then the first blocks.
std::vector<std::string> text_of(const load_plan& plan) {
  auto out = std::vector<std::string>{};
  for (const auto& row : plan.rows) {
    auto line = std::to_string(row.chunk) + "/" + std::to_string(row.key.group);
    for (auto block : row.blocks)
      line.append(1, ' ').append(std::to_string(block));
    out.push_back(line);
  }
  for (auto first : plan.first_block)
    out.push_back("from " + std::to_string(first));
  return out;
}

// GEO-01
TEST(RequestBook, EntersTheFirstChunkOfALoadWhereTheDeviceEnds) {
  auto it = book_of{shape_of({{4}}, 4)};
  it.keys(12);
  const auto plan = it.book.plan_load(
    48, {{1, 2, 3, 4, 5, 105, 106, 107, 108, 109, 110, 111, 112}},
    {{1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}});
  EXPECT_THAT(text_of(plan), ElementsAre("1/0 0 105 106 107",
                                         "2/0 108 109 110 111", "from 5"));
  EXPECT_EQ(plan.rows[0].key.hash, hash(7));
}

TEST(RequestBook, EntersTheFirstChunkOfALoadByTheRemainder) {
  auto it = book_of{shape_of({{4}}, 3)};
  it.keys(12);
  EXPECT_THAT(text_of(it.book.plan_load(24, {{1, 2, 3, 4, 105, 106}},
                                        {{1, 1, 1, 1, 0, 0}})),
              ElementsAre("1/0 0 105 106", "from 4"));
}

TEST(RequestBook, LoadsOnlyTheWindowOfASlidingGroup) {
  auto it = book_of{shape_of({{4}, {4, 4}})};
  it.keys(3);
  EXPECT_THAT(
    text_of(it.book.plan_load(12, {{1, 2, 3, 4}, {0, 0, 13, 14}},
                              {{0, 0, 0, 0}, {0, 0, 0, 0}})),
    ElementsAre("0/0 1", "1/0 2", "2/0 3", "2/1 13", "from 0", "from 2"));
}

TEST(RequestBook, LoadsNothingWhereEverythingIsThere) {
  auto it = book_of{shape_of({{4}})};
  it.keys(2);
  EXPECT_THAT(text_of(it.book.plan_load(8, {{1, 2, 3}}, {{1, 1, 0}})),
              ElementsAre("from 2"));
}

// R13
TEST(RequestBook, NamesAChunkWithoutAKeyByAKeyThatNobodyHas) {
  auto it = book_of{shape_of({{4}})};
  it.keys(1);
  const auto plan = it.book.plan_load(8, {{1, 2}}, {{0, 0}});
  ASSERT_EQ(plan.rows.size(), 2u);
  EXPECT_EQ(plan.rows[1].key.hash, prefix_hash{});
}

// -- the clamp ----------------------------------------------------------------

RC_GTEST_PROP(RequestBook, NeverOffersMoreThanItHas, ()) {
  const auto per_chunk = *rc::gen::inRange(1, 4);
  const auto sliding = *rc::gen::arbitrary<bool>();
  auto it
    = book_of{shape_of({{4, 0, *rc::gen::arbitrary<bool>()},
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
  const auto plan = it.book.plan_store(wanted, next);
  RC_ASSERT(plan.blocks.size() == plan.candidates.size());
  for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
    const auto& x = plan.candidates[i];
    const auto& table = tables[x.key.group];
    const auto first = x.chunk * static_cast<std::size_t>(per_chunk);
    RC_ASSERT(x.chunk >= next[x.key.group]);
    RC_ASSERT(x.chunk < plan.storable[x.key.group]);
    RC_ASSERT(x.end_tokens <= wanted);
    RC_ASSERT(first + static_cast<std::size_t>(per_chunk) <= table.size());
    RC_ASSERT(plan.blocks[i].back() != no_block);
    for (std::size_t j = 0; j < plan.blocks[i].size(); ++j)
      RC_ASSERT(plan.blocks[i][j] == no_block
                || plan.blocks[i][j] == table[first + j]);
  }
}

TEST(RequestBook, EVT_01_names_what_the_first_chunk_follows) {
  auto uut = book_of{shape_of({{}})};
  auto update = request_update{};
  update.parent = hash(77);
  uut.book.apply(update);
  uut.keys(2).blocks({{1, 2}});
  const auto plan = uut.book.plan_store(8, {0});
  ASSERT_EQ(plan.candidates.size(), 2u);
  ASSERT_TRUE(plan.candidates[0].parent.has_value());
  EXPECT_EQ(plan.candidates[0].parent->hash, hash(77));
  EXPECT_FALSE(plan.candidates[1].parent.has_value());
}

} // namespace
} // namespace kvtide::core
