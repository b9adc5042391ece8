// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/token_text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <tuple>
#include <vector>

namespace kvtide::replay {
namespace {

using ids = std::vector<std::uint64_t>;
using run = std::tuple<std::uint64_t, token_count, token_count>;

token_text make_text(const ids& prefix, token_count prompt,
                     std::uint64_t identity, token_count per_hash = 16) {
  return {prefix, {{prompt, identity}}, per_hash};
}

std::vector<run> runs_of(const token_text& text, std::size_t block,
                         token_count first, token_count last) {
  auto res = std::vector<run>{};
  text.visit_runs(
    block, first, last,
    [&res](std::uint64_t seed, token_count begin, token_count end) {
      res.emplace_back(seed, begin, end);
    });
  return res;
}

TEST(TokenText, SharesHashesWhileTheIdsAreEqual) {
  const auto first = ids{1, 2, 3};
  const auto second = ids{1, 2, 4};
  const auto x = make_text(first, 1'536, 10);
  const auto y = make_text(second, 1'536, 11);
  EXPECT_EQ(x.hash(63), y.hash(63));
  EXPECT_NE(x.hash(64), y.hash(64));
}

TEST(TokenText, TellsEqualIdsBehindDifferentOnesApart) {
  const auto first = ids{1, 3};
  const auto second = ids{2, 3};
  EXPECT_NE(make_text(first, 1'024, 10).hash(63),
            make_text(second, 1'024, 10).hash(63));
}

TEST(TokenText, SharesTheWholeHashesThatBothPromptsCover) {
  // Both end inside the same id: 40 and 60 tokens, 16 tokens per hash.
  const auto same = ids{1};
  const auto x = make_text(same, 40, 10);
  const auto y = make_text(same, 60, 11);
  EXPECT_EQ(x.hash(1), y.hash(1));
  // The third hash of the shorter one covers tokens that it sampled.
  EXPECT_NE(x.hash(2), y.hash(2));
}

TEST(TokenText, GivesOutputAnIdentityOfItsOwn) {
  const auto same = ids{1};
  const auto x = make_text(same, 512, 10);
  const auto y = make_text(same, 512, 11);
  EXPECT_EQ(x.hash(31), y.hash(31));
  EXPECT_NE(x.hash(32), y.hash(32));
}

TEST(TokenText, LetsALaterRequestContinueAnEarlierOne) {
  const auto same = ids{1};
  const auto x = make_text(same, 40, 10);
  const auto again = token_text{same, {{40, 10}, {70, 12}}, 16};
  EXPECT_EQ(x.hash(3), again.hash(3));
  EXPECT_NE(x.hash(4), again.hash(4));
}

TEST(TokenText, SplitsABlockWhereTheIdentityChanges) {
  const auto same = ids{1};
  const auto text = make_text(same, 40, 10);
  const auto runs = runs_of(text, 2, 0, 16);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(std::get<1>(runs[0]), 0);
  EXPECT_EQ(std::get<2>(runs[0]), 8);
  EXPECT_EQ(std::get<1>(runs[1]), 8);
  EXPECT_EQ(std::get<2>(runs[1]), 16);
  EXPECT_NE(std::get<0>(runs[0]), std::get<0>(runs[1]));
}

TEST(TokenText, HandlesHashesThatSpanSeveralIds) {
  const auto first = ids{1, 2, 3};
  const auto text = make_text(first, 1'300, 10, 700);
  const auto runs = runs_of(text, 1, 0, 700);
  // Tokens 700 to 1023, 1024 to 1299, and the output.
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(std::get<2>(runs[0]), 324);
  EXPECT_EQ(std::get<2>(runs[1]), 600);
  EXPECT_EQ(std::get<2>(runs[2]), 700);
}

// What a token's bytes follow from must not depend on how many tokens of its
// block were written at once.
RC_GTEST_PROP(TokenText, GivesAPartTheSeedsOfTheWhole, ()) {
  const auto prefix = ids{1, 2};
  const auto prompt = *rc::gen::inRange<token_count>(1, 1'025);
  const auto size = *rc::gen::inRange<token_count>(1, 64);
  const auto text = make_text(prefix, prompt, 9, size);
  const auto block = *rc::gen::inRange<std::size_t>(0, 20);
  const auto first = *rc::gen::inRange<token_count>(0, size);
  const auto last = *rc::gen::inRange<token_count>(first + 1, size + 1);
  auto seeds = std::vector<std::uint64_t>{};
  for (const auto& [seed, begin, end] : runs_of(text, block, 0, size))
    seeds.insert(seeds.end(), static_cast<std::size_t>(end - begin), seed);
  RC_ASSERT(seeds.size() == static_cast<std::size_t>(size));
  auto at = first;
  for (const auto& [seed, begin, end] : runs_of(text, block, first, last)) {
    RC_ASSERT(begin == at);
    for (; at < end; ++at)
      RC_ASSERT(seed == seeds[static_cast<std::size_t>(at)]);
  }
  RC_ASSERT(at == last);
}

} // namespace
} // namespace kvtide::replay
