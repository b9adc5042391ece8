// SPDX-License-Identifier: Apache-2.0

#include "core/store_intent.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace kvtide::core {
namespace {

store_wish wish(token_count prompt, token_count known, token_count computed,
                token_count scheduled = 0) {
  auto out = store_wish{};
  out.prompt = prompt;
  out.known = known;
  out.computed = computed;
  out.scheduled = scheduled;
  return out;
}

store_wish ended(finish_reason reason, token_count prompt, token_count known,
                 token_count computed) {
  auto out = wish(prompt, known, computed);
  out.ending = reason;
  return out;
}

constexpr finish_reason natural[]
  = {finish_reason::stop, finish_reason::length, finish_reason::repetition,
     finish_reason::ignored};

TEST(StoreIntent, WantsWhatARunningRequestComputesInThisStep) {
  EXPECT_EQ(wanted_tokens(wish(16, 16, 4, 6), safe_rules), 10);
}

TEST(StoreIntent, NeverWantsTokensThatAreNotKnown) {
  // Placeholders of asynchronous scheduling and unverified drafts.
  EXPECT_EQ(wanted_tokens(wish(7, 7, 7, 3), safe_rules), 7);
}

TEST(StoreIntent, WantsTheComputedTokensOfAnAbortedRequest) {
  for (const auto* rule : {&reference_rules, &safe_rules})
    EXPECT_EQ(wanted_tokens(ended(finish_reason::abort, 16, 16, 6), *rule), 6);
}

TEST(StoreIntent, LeavesTheLastSampledTokenOfANaturalFinish) {
  for (auto reason : natural) {
    const auto end = ended(reason, 7, 8, 7);
    EXPECT_EQ(wanted_tokens(end, reference_rules), 8);
    EXPECT_EQ(wanted_tokens(end, reference_committed_rules), 7);
    EXPECT_EQ(wanted_tokens(end, safe_rules), 7);
  }
}

TEST(StoreIntent, WantsThePromptWholeOncePrefillIsOver) {
  for (auto reason : natural)
    EXPECT_EQ(wanted_tokens(ended(reason, 8, 8, 8), safe_rules), 8);
}

TEST(StoreIntent, WantsComputedTokensWherePrefillWasNotOver) {
  for (auto reason : natural) {
    const auto end = ended(reason, 16, 16, 6);
    EXPECT_EQ(wanted_tokens(end, reference_rules), 16);
    EXPECT_EQ(wanted_tokens(end, reference_committed_rules), 16);
    EXPECT_EQ(wanted_tokens(end, safe_rules), 6);
  }
}

TEST(StoreIntent, TreatsAnErrorAndAnUnknownReasonAsAnAbort) {
  for (auto reason : {finish_reason::error, static_cast<finish_reason>(200)}) {
    const auto end = ended(reason, 16, 17, 6);
    EXPECT_EQ(wanted_tokens(end, reference_rules), 17);
    EXPECT_EQ(wanted_tokens(end, safe_rules), 6);
  }
}

TEST(StoreIntent, RespectsTheCap) {
  auto x = wish(16, 16, 16);
  x.cap = 9;
  EXPECT_EQ(wanted_tokens(x, safe_rules), 9);
  x.cap = 0;
  EXPECT_EQ(wanted_tokens(x, safe_rules), 0);
}

TEST(StoreIntent, StaysInThePromptIfOnlyThatIsAllowed) {
  auto x = wish(10, 20, 18, 2);
  x.prompt_only = true;
  EXPECT_EQ(wanted_tokens(x, safe_rules), 10);
}

TEST(StoreIntent, WantsNothingOfARequestThatMustNotBeStored) {
  auto x = wish(10, 20, 20);
  x.no_store = true;
  EXPECT_EQ(wanted_tokens(x, safe_rules), 0);
}

RC_GTEST_PROP(StoreIntent, IsBetweenZeroAndAllLimits, ()) {
  auto x = store_wish{};
  x.prompt = *rc::gen::inRange<token_count>(0, 100);
  x.known = x.prompt + *rc::gen::inRange<token_count>(0, 100);
  x.computed = *rc::gen::inRange<token_count>(0, x.known + 5);
  x.scheduled = *rc::gen::inRange<token_count>(0, 20);
  x.cap = *rc::gen::inRange<token_count>(0, 250);
  x.prompt_only = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>())
    x.ending = static_cast<finish_reason>(*rc::gen::inRange(0, 8));
  for (auto set :
       {rule_set::reference, rule_set::reference_committed, rule_set::safe}) {
    const auto wanted = wanted_tokens(x, rules_of(set));
    RC_ASSERT(wanted >= 0);
    RC_ASSERT(wanted <= x.known);
    RC_ASSERT(wanted <= x.cap);
    RC_ASSERT(!x.prompt_only || wanted <= x.prompt);
  }
  // What safe wants was computed, or is in the prompt or before the last token.
  if (x.ending)
    RC_ASSERT(wanted_tokens(x, safe_rules)
              <= std::max({x.computed, x.known - 1,
                           x.computed >= x.prompt ? x.prompt : 0}));
}

} // namespace
} // namespace kvtide::core
