// SPDX-License-Identifier: Apache-2.0

/// @file
/// `explain` says what the next lookup will answer, and why.

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

using states = std::vector<std::vector<chunk_state>>;

constexpr auto ready = chunk_state::ready;
constexpr auto absent = chunk_state::absent;

/// What it says agrees with the lookup that follows.
explain_answer explained(test_system& sys, request_id id) {
  auto out = sys.explain(id);
  const auto promised = sys.counters().held_slots;
  const auto recency = sys.idle_chunks();
  EXPECT_NE(out.text, "");
  (void)sys.explain(id);
  EXPECT_EQ(sys.counters().held_slots, promised) << "it holds nothing";
  EXPECT_EQ(sys.idle_chunks(), recency) << "it is no access";
  const auto found = sys.lookup(id);
  EXPECT_EQ(found.has_value(), !out.ask_again) << out.text;
  EXPECT_EQ(found.value_or(out.tokens), out.tokens) << out.text;
  if (const auto promise = sys.promise(id); promise != 0)
    sys.decline(promise);
  return out;
}

TEST(Explain, SaysHowFarTheHostPoolGoesAndWhatComesThen) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 17, {P, 8});
  const auto what = explained(sys, R);
  EXPECT_EQ(what.request, R);
  EXPECT_EQ(what.prompt_tokens, 17);
  EXPECT_EQ(what.known_tokens, 17);
  EXPECT_EQ(what.hashed_tokens, 16);
  EXPECT_EQ(what.tokens, 8);
  EXPECT_EQ(what.reason, miss_reason::absent);
  EXPECT_EQ(what.chunk, 2u);
  EXPECT_EQ(what.chunks, (states{{ready, ready, absent, absent}}));
  EXPECT_THAT(what.text, HasSubstr("chunk 2 of group 0 (tokens 8 to 11)"));
}

TEST(Explain, SaysThatNothingIsMissing) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(explained(sys, R).reason, miss_reason::none);
}

// R16
TEST(Explain, SaysThatOneTokenIsLeftToCompute) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 8, {P, 8});
  const auto what = explained(sys, R);
  EXPECT_EQ(what.tokens, 7);
  EXPECT_EQ(what.reason, miss_reason::last_token);
}

TEST(Explain, SaysThatNoKeysWereSent) {
  auto sys = test_system{plain_options()};
  sys.add(R, 3);
  const auto what = explained(sys, R);
  EXPECT_EQ(what.reason, miss_reason::no_keys);
  EXPECT_THAT(what.chunks, ElementsAre(IsEmpty()));
}

TEST(Explain, SaysWhatTheRequestAskedFor) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1, 2}}, 8);
  auto how = add_with{P, 8};
  how.no_read = true;
  sys.add(R, 9, how);
  const auto what = explained(sys, R);
  EXPECT_EQ(what.reason, miss_reason::no_read);
  EXPECT_EQ(what.chunks, (states{{ready, ready}})) << "what it passes by";
}

TEST(Explain, SaysThatAChunkIsStillWritten) {
  auto opts = plain_options();
  opts.max_deferrals = 2;
  auto sys = test_system{opts};
  sys.add(P, 8);
  ASSERT_EQ(sys.step({{{P, 8, {{1, 2}}}}, {}}), "S0{P#0<-1,P#1<-2}");
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(explained(sys, R).reason, miss_reason::writing);
  EXPECT_TRUE(explained(sys, R).ask_again);
  const auto what = explained(sys, R);
  EXPECT_FALSE(what.ask_again) << "it was asked often enough (R7)";
  EXPECT_EQ(what.tokens, 0);
  EXPECT_EQ(what.reason, miss_reason::writing);
  EXPECT_EQ(explained(sys, P).reason, miss_reason::own_jobs);
}

TEST(Explain, SaysThatAChunkIsBeingLoaded) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(Q, 9, {P, 8});
  ASSERT_EQ(sys.lookup(Q), 8);
  sys.alloc(Q, {{4, 5, 6}}, 8);
  sys.add(R, 9, {P, 8});
  const auto what = explained(sys, R);
  EXPECT_TRUE(what.ask_again);
  EXPECT_EQ(what.reason, miss_reason::loading);
  EXPECT_EQ(what.chunks,
            (states{{chunk_state::loading, chunk_state::loading}}));
}

TEST(Explain, SaysThatAChunkWasLookedUpTooSeldom) {
  auto opts = plain_options();
  opts.store_threshold = 3;
  auto sys = test_system{opts};
  sys.add(R, 9);
  EXPECT_EQ(explained(sys, R).reason, miss_reason::below_threshold);
  for (auto i = 0; i < 5; ++i)
    (void)sys.explain(R);
  EXPECT_EQ(sys.explain(R).reason, miss_reason::below_threshold)
    << "to explain is no use";
  EXPECT_EQ(sys.lookup(R), 0);
  EXPECT_EQ(sys.lookup(R), 0);
  EXPECT_EQ(sys.explain(R).reason, miss_reason::absent);
}

TEST(Explain, SaysThatAChunkWasEvictedWhereThePolicyRemembers) {
  auto opts = plain_options();
  opts.policy = eviction_policy::arc;
  auto sys = test_system{opts, 2};
  warm(sys, P, {{1, 2}}, 8);
  warm(sys, X, {{3}}, 4);
  sys.add(R, 9, {P, 8});
  const auto what = sys.explain(R);
  EXPECT_EQ(what.reason, miss_reason::evicted);
  EXPECT_EQ(what.chunks.at(0).at(what.chunk), chunk_state::evicted);
  EXPECT_EQ(sys.lookup(R), what.tokens);
}

TEST(Explain, SaysThatTheRequestIsOnItsOwn) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1}}, 4);
  sys.add(R, 5, {P, 4});
  sys.doom_request(R);
  (void)sys.counters();
  EXPECT_EQ(explained(sys, R).reason, miss_reason::request_lost);
}

TEST(Explain, KnowsNoRequestThatIsNotThere) {
  auto sys = test_system{plain_options()};
  sys.expect_wrong_calls();
  sys.add(R, 5);
  (void)sys.finish(R, finish_reason::abort);
  sys.raw_explain(R);
  sys.raw_explain(Q);
  EXPECT_THAT(sys.notices(), ElementsAre("failed R unknown_request",
                                         "failed Q unknown_request"));
}

} // namespace
} // namespace kvtide::test
