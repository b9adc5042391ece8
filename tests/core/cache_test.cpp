// SPDX-License-Identifier: Apache-2.0

#include "core/cache.hpp"
#include "tests/core/search_world.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace kvtide::core {
namespace {

using names = std::vector<std::string>;
using slots = std::vector<slot_id>;

/// One full attention group, 4 tokens per chunk.
class Cache : public ::testing::Test {
protected:
  static cache make(const rules& rule, std::size_t count,
                    eviction_policy policy = eviction_policy::lru) {
    return cache{
      {count, policy, 1, true}, search_layout({{4, 0, false}}), rule};
  }

  static search_query query(const std::string& name, std::size_t chunks) {
    auto out = search_query{};
    out.keys = {view_of(numbered(name, chunks))};
    out.known = static_cast<token_count>(chunks) * 4 + 1;
    return out;
  }

  static store_offer offer(const std::string& name, std::size_t chunks,
                           request_id request = 1) {
    auto out = offer_of(keys(name, chunks), request);
    out.keys = {view_of(numbered(name, chunks))};
    return out;
  }

  static std::vector<chunk_key> keys(const std::string& name, std::size_t n) {
    auto out = std::vector<chunk_key>{};
    for (const auto& hash : numbered(name, n))
      out.push_back(named_key(hash));
    return out;
  }

  static void store(cache& uut, const std::string& name, std::size_t chunks) {
    const auto grants = uut.prepare_stores(std::vector{offer(name, chunks)});
    ASSERT_FALSE(grants.at(0).refused());
    uut.complete_store(keys(name, chunks), true);
  }

  static names lru(const cache& uut) {
    return names_of(*uut.state().lru);
  }
};

TEST_F(Cache, AnswersAHitAndRemembersWhereItEnds) {
  auto uut = make(safe_rules, 8);
  store(uut, "a", 3);
  auto ask = query("a", 3);
  ask.local = 4;
  const auto got = uut.search(ask);
  EXPECT_EQ(got.tokens, 8);
  EXPECT_EQ(got.end_tokens, 12);
  EXPECT_FALSE(got.held);
}

TEST_F(Cache, FindsNothingForARequestThatSkipsReading) {
  auto uut = make(safe_rules, 8);
  store(uut, "a", 3);
  auto ask = query("a", 3);
  ask.skip_reading = true;
  ask.promise = 1;
  const auto got = uut.search(ask);
  EXPECT_EQ(got.tokens, 0);
  EXPECT_FALSE(got.held);
}

TEST_F(Cache, R12TouchesOncePerAdmissionAndOnlyIfItAnswers) {
  auto uut = make(safe_rules, 8);
  store(uut, "a", 1);
  store(uut, "b", 1);
  auto ask = query("a", 1);
  ask.touch = false;
  EXPECT_FALSE(uut.search(ask).touched);
  EXPECT_EQ(lru(uut), (names{"a0/0", "b0/0"}));
  ask.touch = true;
  EXPECT_TRUE(uut.search(ask).touched);
  EXPECT_EQ(lru(uut), (names{"b0/0", "a0/0"}));
  ASSERT_FALSE(uut.prepare_stores(std::vector{offer("c", 1)})[0].refused());
  const auto deferred = uut.search(query("c", 1));
  EXPECT_EQ(deferred.tokens, std::nullopt);
  EXPECT_FALSE(deferred.touched);
}

TEST_F(Cache, TouchesAtEachLookupAndStoreUnderReferenceRules) {
  auto uut = make(reference_rules, 8);
  store(uut, "a", 1);
  store(uut, "b", 1);
  auto ask = query("a", 1);
  ask.touch = false;
  EXPECT_TRUE(uut.search(ask).touched);
  EXPECT_EQ(lru(uut), (names{"b0/0", "a0/0"}));
  // The store of b1 is one more access to b0.
  ASSERT_FALSE(uut.prepare_stores(std::vector{offer("b", 2)})[0].refused());
  EXPECT_EQ(lru(uut), (names{"a0/0", "b0/0"}));
}

TEST_F(Cache, Pol03CountsManyStoresOfARequestAsOneAccess) {
  auto uut = make(safe_rules, 200, eviction_policy::arc);
  for (std::size_t chunks = 1; chunks <= 100; ++chunks) {
    const auto grants = uut.prepare_stores(std::vector{offer("r", chunks)});
    ASSERT_EQ(grants[0].accepted.size(), 1u);
    uut.complete_store(keys("r", chunks), true);
  }
  EXPECT_TRUE(uut.state().arc->t2.empty());
}

TEST_F(Cache, Toc01HoldsWhatALookupPromised) {
  auto uut = make(safe_rules, 2);
  store(uut, "p", 2);
  auto ask = query("p", 2);
  ask.promise = 5;
  EXPECT_TRUE(uut.search(ask).held);
  EXPECT_TRUE(uut.prepare_stores(std::vector{offer("x", 1)})[0].refused());
  const auto grant = uut.prepare_load(keys("p", 2), 5);
  EXPECT_EQ(grant.slots, (slots{0, 1}));
  EXPECT_FALSE(grant.gained);
  EXPECT_EQ(uut.state().held, 0u);
  EXPECT_TRUE(uut.complete_load(keys("p", 2)));
  EXPECT_EQ(uut.state().evictable, 2u);
}

TEST_F(Cache, R11HoldsExactlyWhatTheLoadWillRead) {
  auto uut = make(safe_rules, 8);
  store(uut, "p", 4);
  auto ask = query("p", 4);
  ask.local = 4;
  ask.promise = 5;
  EXPECT_EQ(uut.search(ask).tokens, 12);
  EXPECT_EQ(uut.state().held, 3u);
  // The next lookup of the same promise replaces it.
  ask.local = 8;
  EXPECT_EQ(uut.search(ask).tokens, 8);
  EXPECT_EQ(uut.state().held, 2u);
}

TEST_F(Cache, R11HoldsNothingUnderReferenceRules) {
  auto uut = make(reference_rules, 8);
  store(uut, "p", 4);
  auto ask = query("p", 4);
  ask.promise = 5;
  EXPECT_FALSE(uut.search(ask).held);
  EXPECT_EQ(uut.state().held, 0u);
}

TEST_F(Cache, Lek01ReleasesAPromiseThatIsNotUsed) {
  auto uut = make(safe_rules, 2);
  store(uut, "p", 2);
  auto ask = query("p", 2);
  ask.promise = 5;
  EXPECT_TRUE(uut.search(ask).held);
  EXPECT_TRUE(uut.release_promise(5));
  EXPECT_EQ(uut.state().busy, 0u);
  EXPECT_EQ(uut.prepare_stores(std::vector{offer("q", 2)})[0].accepted.size(),
            2u);
}

TEST_F(Cache, R13EndsThePromiseEvenIfAKeyIsAbsentAtTheLoad) {
  auto uut = make(safe_rules, 4);
  store(uut, "p", 2);
  auto ask = query("p", 2);
  ask.promise = 5;
  EXPECT_TRUE(uut.search(ask).held);
  const auto grant = uut.prepare_load(keys("p", 3), 5);
  EXPECT_EQ(grant.absent, 2u);
  EXPECT_TRUE(grant.gained);
  EXPECT_EQ(uut.state().evictable, 2u);
}

TEST_F(Cache, Pre05RefusesOneOfferWithoutHarmToTheOthers) {
  for (const auto* rule : {&reference_rules, &safe_rules}) {
    auto uut = make(*rule, 2);
    store(uut, "l", 2);
    ASSERT_TRUE(uut.prepare_load(keys("l", 2)).ok());
    const auto both = std::vector{offer("a", 2, 1), offer("b", 2, 2)};
    for (const auto& grant : uut.prepare_stores(both)) {
      EXPECT_TRUE(grant.refused());
      EXPECT_TRUE(grant.accepted.empty());
    }
    EXPECT_TRUE(uut.complete_load(keys("l", 2)));
    const auto again = uut.prepare_stores(both);
    EXPECT_EQ(again[0].accepted.size(), 2u);
    EXPECT_FALSE(again[0].refused());
    EXPECT_TRUE(again[1].refused());
  }
}

TEST_F(Cache, R12MovesARequestToTheNewestEndTailFirst) {
  auto uut = make(safe_rules, 8);
  store(uut, "a", 3);
  store(uut, "b", 1);
  uut.move_to_newest(query("a", 3).keys);
  EXPECT_EQ(lru(uut), (names{"b0/0", "a2/0", "a1/0", "a0/0"}));
}

TEST_F(Cache, DefersALookupOfWhatIsBeingLoadedOnlyWithPrefixCaching) {
  for (const auto prefix_caching : {true, false}) {
    auto uut = cache{{8, eviction_policy::lru, 1, prefix_caching},
                     search_layout({{4, 0, false}}),
                     safe_rules};
    store(uut, "p", 2);
    ASSERT_TRUE(uut.prepare_load(keys("p", 2)).ok());
    EXPECT_EQ(uut.search(query("p", 2)).tokens.has_value(), !prefix_caching);
  }
}

TEST_F(Cache, S8KeepsRunningSlotsOutOfUseAcrossAReset) {
  auto uut = make(safe_rules, 2);
  ASSERT_EQ(uut.prepare_stores(std::vector{offer("a", 1)})[0].accepted.size(),
            1u);
  uut.reset(slots{0});
  const auto grant = uut.prepare_stores(std::vector{offer("b", 1)})[0];
  ASSERT_EQ(grant.accepted.size(), 1u);
  EXPECT_EQ(grant.accepted[0].slot, 1u);
  EXPECT_TRUE(uut.release_slots(slots{0}));
  EXPECT_EQ(uut.state().free, 1u);
}

TEST_F(Cache, TakesAnOfferThatDoesNotSayAllKeys) {
  for (const auto* rule : {&reference_rules, &safe_rules}) {
    auto uut = make(*rule, 2);
    const auto offers = std::vector{offer_of(keys("a", 1))};
    EXPECT_EQ(uut.prepare_stores(offers)[0].accepted.size(), 1u);
  }
}

TEST_F(Cache, GivesEqualAnswersToEqualCalls) {
  const auto play = [](cache& uut) {
    store(uut, "a", 3);
    store(uut, "b", 4);
    static_cast<void>(uut.search(query("a", 3)));
    store(uut, "c", 3);
    return lru(uut);
  };
  auto one = make(safe_rules, 8);
  auto two = make(safe_rules, 8);
  EXPECT_EQ(play(one), play(two));
}

} // namespace
} // namespace kvtide::core
