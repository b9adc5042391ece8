// SPDX-License-Identifier: Apache-2.0

#include "core/host_pool.hpp"
#include "tests/core/pool_keys.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace kvtide::core {
namespace {

using names = std::vector<std::string>;
using slots = std::vector<slot_id>;

host_pool::config small(std::size_t count,
                        eviction_policy policy = eviction_policy::lru) {
  return {count, policy, 1, {test_chunk, test_chunk}};
}

/// A request with `n` chunks, hashes "<name>0" and on, that offers the chunks
/// from `first` on.
store_offer request_offer(const std::string& name, std::size_t n,
                          std::uint32_t first = 0, request_id request = 1) {
  const auto view = view_of(numbered(name, n));
  auto keys = std::vector<chunk_key>{};
  for (std::size_t at = first; at < n; ++at)
    keys.push_back(view[at]);
  auto out = offer_of(keys, request, first);
  out.keys = {view};
  return out;
}

std::vector<chunk_key> keys_of_offer(const store_offer& offer) {
  auto out = std::vector<chunk_key>{};
  for (const auto& what : offer.candidates)
    out.push_back(what.key);
  return out;
}

slots slots_of(const store_grant& grant) {
  auto out = slots{};
  for (const auto& chunk : grant.accepted)
    out.push_back(chunk.slot);
  return out;
}

/// Stores keys one after the other.
void store(host_pool& uut, const std::vector<chunk_key>& keys) {
  ASSERT_FALSE(uut.prepare_store(offer_of(keys)).refused());
  uut.complete_store(keys, true);
}

void store(host_pool& uut, const store_offer& offer) {
  ASSERT_FALSE(uut.prepare_store(offer).refused());
  uut.complete_store(keys_of_offer(offer), true);
}

names lru(const host_pool& uut) {
  return names_of(*uut.state().lru);
}

bool has(const host_pool& uut, std::string_view name) {
  return uut.find(named_key(name)).has_value();
}

// -- stores -------------------------------------------------------------------

TEST(HostPool, Pol01ProtectsThePresentKeysOfTheCall) {
  for (const auto* rule : {&reference_rules, &safe_rules}) {
    auto uut = host_pool{small(4), *rule};
    store(uut, named_keys({"1", "2", "3", "4"}));
    uut.touch(named_keys({"1", "2", "3", "4"}));
    uut.touch(named_keys({"4", "3", "2"}));
    const auto grant
      = uut.prepare_store(offer_of(named_keys({"2", "3", "4", "5"})));
    EXPECT_EQ(names_of(grant.evicted), (names{"1/0"}));
    ASSERT_EQ(grant.accepted.size(), 1u);
    EXPECT_EQ(grant.accepted[0].candidate, 3u);
  }
}

TEST(HostPool, Pol01RefusesTheWholeCallUnderReferenceAndChangesNothing) {
  auto uut = host_pool{small(4), reference_rules};
  store(uut, named_keys({"1", "2", "3", "4"}));
  const auto before = lru(uut);
  const auto grant
    = uut.prepare_store(offer_of(named_keys({"2", "3", "4", "5", "6"})));
  EXPECT_TRUE(grant.refused());
  EXPECT_TRUE(grant.accepted.empty());
  EXPECT_EQ(lru(uut), before);
}

TEST(HostPool, Pol01KeepsTheKeysOfTheCallWithArcToo) {
  for (const auto* rule : {&reference_rules, &safe_rules}) {
    auto uut = host_pool{small(4, eviction_policy::arc), *rule};
    store(uut, named_keys({"1", "2", "3", "4"}));
    const auto grant
      = uut.prepare_store(offer_of(named_keys({"1", "2", "4", "5"})));
    EXPECT_EQ(names_of(grant.evicted), (names{"3/0"}));
    const auto refused
      = uut.prepare_store(offer_of(named_keys({"1", "2", "4", "5", "6"})));
    EXPECT_TRUE(refused.refused());
    EXPECT_TRUE(refused.evicted.empty());
    for (const auto* name : {"1", "2", "4"})
      EXPECT_TRUE(has(uut, name));
  }
}

TEST(HostPool, Pol06DoesNotStoreAKeyWhoseStoreIsInFlight) {
  for (auto policy : {eviction_policy::lru, eviction_policy::arc}) {
    auto uut = host_pool{small(4, policy), safe_rules};
    ASSERT_EQ(uut.prepare_store(request_offer("a", 2)).accepted.size(), 2u);
    const auto again = uut.prepare_store(request_offer("a", 3, 0, 2));
    EXPECT_FALSE(again.refused());
    ASSERT_EQ(again.accepted.size(), 1u);
    EXPECT_EQ(again.accepted[0].candidate, 2u);
  }
}

TEST(HostPool, Liv06RefusesAtOnceWhenEverySlotIsPinned) {
  for (auto policy : {eviction_policy::lru, eviction_policy::arc}) {
    auto uut = host_pool{small(1, policy), safe_rules};
    store(uut, named_keys({"a"}));
    ASSERT_TRUE(uut.prepare_load(named_keys({"a"})).ok());
    const auto grant = uut.prepare_store(offer_of(named_keys({"b"})));
    EXPECT_TRUE(grant.refused());
    EXPECT_TRUE(grant.accepted.empty());
    EXPECT_TRUE(uut.complete_load(named_keys({"a"})));
    EXPECT_FALSE(uut.prepare_store(offer_of(named_keys({"b"}))).refused());
  }
}

TEST(HostPool, R5StoresTheLeadingPartThatFits) {
  auto uut = host_pool{small(3), safe_rules};
  const auto grant = uut.prepare_store(request_offer("a", 5));
  EXPECT_TRUE(grant.refused());
  EXPECT_EQ(slots_of(grant), (slots{0, 1, 2}));
  EXPECT_GE(grant.settled_tokens, 3 * test_chunk);
  EXPECT_LT(grant.settled_tokens, 4 * test_chunk);
}

TEST(HostPool, R5CutsAllGroupsAtTheSameToken) {
  auto uut = host_pool{small(5), safe_rules};
  const auto offer
    = offer_of(named_keys({"a/0", "b/0", "c/0", "a/1", "b/1", "c/1"}));
  const auto grant = uut.prepare_store(offer);
  ASSERT_EQ(grant.accepted.size(), 4u);
  EXPECT_EQ(grant.accepted[1].candidate, 1u);
  EXPECT_EQ(grant.accepted[2].candidate, 3u);
  EXPECT_EQ(grant.settled_tokens, 3 * test_chunk - 1);
  EXPECT_EQ(uut.state().free, 1u);
}

TEST(HostPool, R5EvictsNoChunkOfTheRequestForIt) {
  auto uut = host_pool{small(3), safe_rules};
  store(uut, request_offer("a", 2));
  store(uut, named_keys({"other"}));
  const auto grant = uut.prepare_store(request_offer("a", 4, 2));
  EXPECT_EQ(names_of(grant.evicted), (names{"other/0"}));
  EXPECT_EQ(grant.accepted.size(), 1u);
  EXPECT_TRUE(grant.refused());
  EXPECT_TRUE(has(uut, "a0"));
  EXPECT_TRUE(has(uut, "a1"));
}

TEST(HostPool, R6StoresWithArcAsLongAsAnythingElseIsIdle) {
  for (const auto* rule : {&reference_rules, &safe_rules}) {
    auto uut = host_pool{small(2, eviction_policy::arc), *rule};
    store(uut, named_keys({"a", "b"}));
    uut.touch(named_keys({"a"}));
    ASSERT_FALSE(uut.prepare_store(offer_of(named_keys({"c"}))).refused());
    uut.complete_store(named_keys({"c"}), true);
    for (auto turn = 0; turn < 2; ++turn)
      uut.touch(named_keys({"b"}));
    // T1 is {c}, T2 is {a}, the target is 2; with a busy, only c is left.
    ASSERT_TRUE(uut.prepare_load(named_keys({"a"})).ok());
    EXPECT_EQ(uut.prepare_store(offer_of(named_keys({"d"}))).refused(),
              !rule->arc_falls_back_to_t1);
  }
}

TEST(HostPool, StoresAKeyThatIsOfferedTwiceOnlyOnce) {
  auto uut = host_pool{small(4), safe_rules};
  const auto grant = uut.prepare_store(offer_of(named_keys({"a", "a", "b"})));
  EXPECT_EQ(grant.accepted.size(), 2u);
  EXPECT_EQ(uut.state().free, 2u);
  EXPECT_EQ(uut.state().writing, 2u);
}

TEST(HostPool, StoresNothingWithoutSlots) {
  auto uut = host_pool{small(0), safe_rules};
  const auto grant = uut.prepare_store(request_offer("a", 2));
  EXPECT_TRUE(grant.refused());
  EXPECT_TRUE(grant.accepted.empty());
}

TEST(HostPool, StoresOnlyKeysThatWereLookedUpOftenEnough) {
  auto cfg = small(4);
  cfg.store_threshold = 2;
  auto uut = host_pool{cfg, safe_rules};
  EXPECT_EQ(uut.lookup_key(named_key("a")), host_pool::presence::miss);
  EXPECT_EQ(uut.lookup_key(named_key("b")), host_pool::presence::miss);
  EXPECT_EQ(uut.lookup_key(named_key("b")), host_pool::presence::miss);
  uut.reset({});
  const auto grant = uut.prepare_store(offer_of(named_keys({"a", "b"})));
  EXPECT_FALSE(grant.refused());
  ASSERT_EQ(grant.accepted.size(), 1u);
  EXPECT_EQ(grant.accepted[0].candidate, 1u);
}

// -- failures -----------------------------------------------------------------

TEST(HostPool, R8SaysWhoSkippedAChunkWhoseStoreFailed) {
  auto uut = host_pool{small(4), safe_rules};
  const auto first = request_offer("a", 2);
  EXPECT_EQ(uut.prepare_store(first).accepted.size(), 2u);
  EXPECT_TRUE(uut.prepare_store(request_offer("a", 2, 0, 7)).accepted.empty());
  const auto out = uut.complete_store(keys_of_offer(first), false);
  EXPECT_TRUE(out.gained);
  EXPECT_EQ(out.skipped, (std::vector<chunk_ref>{{7, 0, 0}, {7, 0, 1}}));
  EXPECT_EQ(uut.state().free, 4u);
}

TEST(HostPool, R8ForgetsWhoSkippedAChunkWhenItsStoreSucceeds) {
  auto uut = host_pool{small(1), safe_rules};
  const auto first = request_offer("a", 1);
  EXPECT_EQ(uut.prepare_store(first).accepted.size(), 1u);
  EXPECT_TRUE(uut.prepare_store(request_offer("a", 1, 0, 7)).accepted.empty());
  EXPECT_TRUE(uut.complete_store(keys_of_offer(first), true).skipped.empty());
  // The slot's next user must not inherit them.
  EXPECT_EQ(uut.prepare_store(request_offer("b", 1)).accepted.size(), 1u);
  const auto out = uut.complete_store(named_keys({"b0"}), false);
  EXPECT_TRUE(out.skipped.empty());
}

TEST(HostPool, R8DoesNotCountARefusedChunkAsSkipped) {
  auto uut = host_pool{small(2), safe_rules};
  EXPECT_EQ(
    uut.prepare_store(offer_of(named_keys({"x", "c/1"}))).accepted.size(), 2u);
  // Chunk b does not fit, so c will be offered again.
  const auto grant = uut.prepare_store(offer_of(named_keys({"b/1", "c/1"}), 7));
  EXPECT_EQ(grant.settled_tokens, test_chunk - 1);
  EXPECT_TRUE(uut.complete_store(named_keys({"c/1"}), false).skipped.empty());
}

TEST(HostPool, S8KeepsTheSlotsOfALateStoreOutOfUseUntilTheyAreReleased) {
  auto uut = host_pool{small(2), safe_rules};
  const auto first = request_offer("a", 2);
  EXPECT_EQ(slots_of(uut.prepare_store(first)), (slots{0, 1}));
  EXPECT_FALSE(uut.complete_store(keys_of_offer(first), false, true).gained);
  EXPECT_EQ(uut.state().quarantined, 2u);
  EXPECT_TRUE(uut.prepare_store(request_offer("b", 1)).accepted.empty());
  EXPECT_TRUE(uut.release_slots(slots{1}));
  EXPECT_EQ(slots_of(uut.prepare_store(request_offer("b", 1))), (slots{1}));
  EXPECT_FALSE(uut.release_slots(slots{1}));
}

TEST(HostPool, R9DoesNotHandOutSlotsOfRunningCopiesAfterAReset) {
  auto uut = host_pool{small(3), safe_rules};
  EXPECT_EQ(slots_of(uut.prepare_store(request_offer("a", 2))), (slots{0, 1}));
  uut.reset(slots{0, 1});
  uut.reset(slots{0, 1});
  EXPECT_EQ(uut.state().free, 1u);
  EXPECT_EQ(slots_of(uut.prepare_store(request_offer("b", 1))), (slots{2}));
  EXPECT_TRUE(uut.release_slots(slots{0, 1}));
  EXPECT_EQ(uut.state().free, 2u);
}

TEST(HostPool, R9HandsThemOutIfTheyAreNotToBeKept) {
  auto uut = host_pool{small(2), reference_rules};
  EXPECT_EQ(slots_of(uut.prepare_store(request_offer("a", 2))), (slots{0, 1}));
  uut.reset(slots{0, 1}, false);
  EXPECT_EQ(slots_of(uut.prepare_store(request_offer("b", 2))), (slots{0, 1}));
}

// -- loads and promises -------------------------------------------------------

TEST(HostPool, R13NamesTheFirstKeyThatIsAbsentAndPinsNothing) {
  auto uut = host_pool{small(4), safe_rules};
  store(uut, named_keys({"a", "b"}));
  EXPECT_FALSE(uut.prepare_store(offer_of(named_keys({"c"}))).refused());
  EXPECT_EQ(uut.prepare_load(named_keys({"a", "x", "b"})).absent, 1u);
  EXPECT_EQ(uut.prepare_load(named_keys({"a", "b", "c"})).absent, 2u);
  EXPECT_EQ(uut.state().busy, 0u);
}

TEST(HostPool, R11HoldsOneHitWholeAndFurtherOnesUpToHalfOfTheSlots) {
  auto uut = host_pool{small(4), safe_rules};
  store(uut, named_keys({"a", "b", "c", "d"}));
  EXPECT_TRUE(uut.hold(1, slots{0, 1, 2}));
  EXPECT_FALSE(uut.hold(2, slots{3}));
  EXPECT_TRUE(uut.release(1));
  EXPECT_TRUE(uut.hold(3, slots{3}));
  EXPECT_TRUE(uut.hold(4, slots{2, 3}));
  EXPECT_FALSE(uut.hold(5, slots{0}));
  EXPECT_EQ(uut.state().held, 2u);
}

TEST(HostPool, Toc01DoesNotEvictWhatAPromiseHolds) {
  for (auto policy : {eviction_policy::lru, eviction_policy::arc}) {
    auto uut = host_pool{small(2, policy), safe_rules};
    store(uut, request_offer("p", 2));
    ASSERT_TRUE(uut.hold(1, slots{0, 1}));
    EXPECT_TRUE(uut.prepare_store(offer_of(named_keys({"x"}))).refused());
    EXPECT_EQ(uut.prepare_load(named_keys({"p0", "p1"})).slots, (slots{0, 1}));
    EXPECT_FALSE(uut.release(1));
    EXPECT_TRUE(uut.complete_load(named_keys({"p0", "p1"})));
  }
}

TEST(HostPool, Lek01LeavesNothingHeldAfterTheEndOfAPromise) {
  for (auto policy : {eviction_policy::lru, eviction_policy::arc}) {
    auto uut = host_pool{small(2, policy), safe_rules};
    store(uut, request_offer("p", 2));
    ASSERT_TRUE(uut.hold(1, slots{0, 1}));
    EXPECT_TRUE(uut.release(1));
    EXPECT_FALSE(uut.release(1));
    EXPECT_EQ(uut.state().busy, 0u);
    EXPECT_EQ(uut.prepare_store(request_offer("q", 2)).accepted.size(), 2u);
  }
}

TEST(HostPool, EndsPromisesAtAReset) {
  auto uut = host_pool{small(2), safe_rules};
  store(uut, named_keys({"a"}));
  ASSERT_TRUE(uut.hold(1, slots{0}));
  uut.reset({});
  EXPECT_FALSE(uut.release(1));
  EXPECT_EQ(uut.state().held, 0u);
  EXPECT_EQ(uut.state().free, 2u);
}

TEST(HostPool, IgnoresTheEndOfALoadThatOnlyAPromiseExplains) {
  auto uut = host_pool{small(2), safe_rules};
  store(uut, named_keys({"a"}));
  ASSERT_TRUE(uut.hold(1, slots{0}));
  EXPECT_FALSE(uut.complete_load(named_keys({"a", "x"})));
  EXPECT_EQ(uut.state().busy, 1u);
}

TEST(HostPool, RemembersWhatIsBeingLoadedUntilTheFirstLoadOfItEnds) {
  auto uut = host_pool{small(1), reference_rules};
  store(uut, named_keys({"a"}));
  EXPECT_TRUE(uut.prepare_load(named_keys({"a"}), true).ok());
  EXPECT_TRUE(uut.prepare_load(named_keys({"a"}), true).ok());
  EXPECT_TRUE(uut.entry(0).loading);
  EXPECT_FALSE(uut.complete_load(named_keys({"a"})));
  EXPECT_FALSE(uut.entry(0).loading);
}

// -- recency ------------------------------------------------------------------

TEST(HostPool, Pol03EvictsTheTailFirstWhateverOrderStoresEndIn) {
  auto uut = host_pool{small(3), safe_rules};
  EXPECT_EQ(uut.prepare_store(request_offer("r", 3)).accepted.size(), 3u);
  for (const auto* name : {"r2", "r0", "r1"})
    uut.complete_store(named_keys({name}), true);
  EXPECT_EQ(lru(uut), (names{"r2/0", "r1/0", "r0/0"}));
  const auto grant = uut.prepare_store(request_offer("q", 1));
  EXPECT_EQ(names_of(grant.evicted), (names{"r2/0"}));
}

TEST(HostPool, Pol03EvictsTheTailFirstWithArcToo) {
  auto uut = host_pool{small(3, eviction_policy::arc), safe_rules};
  EXPECT_EQ(uut.prepare_store(request_offer("r", 3)).accepted.size(), 3u);
  for (const auto* name : {"r2", "r0", "r1"})
    uut.complete_store(named_keys({name}), true);
  const auto grant = uut.prepare_store(request_offer("q", 1));
  EXPECT_EQ(names_of(grant.evicted), (names{"r2/0"}));
}

TEST(HostPool, R12PutsAChunkBehindItsPredecessorWhenALoadEnds) {
  auto uut = host_pool{small(4), safe_rules};
  store(uut, request_offer("r", 2));
  store(uut, named_keys({"x", "y"}));
  ASSERT_TRUE(uut.prepare_load(named_keys({"r1"})).ok());
  EXPECT_EQ(lru(uut), (names{"r0/0", "x/0", "y/0"}));
  EXPECT_TRUE(uut.complete_load(named_keys({"r1"})));
  EXPECT_EQ(lru(uut), (names{"r1/0", "r0/0", "x/0", "y/0"}));
}

TEST(HostPool, R12PutsAChunkAtTheNewestEndIfItsPredecessorIsBusy) {
  auto uut = host_pool{small(4), safe_rules};
  store(uut, request_offer("r", 2));
  store(uut, named_keys({"x"}));
  ASSERT_TRUE(uut.prepare_load(named_keys({"r0", "r1"})).ok());
  EXPECT_TRUE(uut.complete_load(named_keys({"r1"})));
  EXPECT_EQ(lru(uut), (names{"x/0", "r1/0"}));
}

TEST(HostPool, R12LooksForAnIdlePredecessorWithArcToo) {
  auto uut = host_pool{small(4, eviction_policy::arc), safe_rules};
  store(uut, request_offer("r", 2));
  store(uut, named_keys({"x"}));
  ASSERT_TRUE(uut.prepare_load(named_keys({"r0", "r1"})).ok());
  EXPECT_TRUE(uut.complete_load(named_keys({"r1"})));
  EXPECT_EQ(names_of(uut.state().arc->t1), (names{"r0/0", "x/0", "r1/0"}));
  EXPECT_TRUE(uut.complete_load(named_keys({"r0"})));
  EXPECT_EQ(names_of(uut.state().arc->t1), (names{"x/0", "r1/0", "r0/0"}));
}

TEST(HostPool, R12MovesKeysWithoutCountingAnAccess) {
  auto uut = host_pool{small(2, eviction_policy::arc), safe_rules};
  store(uut, named_keys({"a", "b"}));
  uut.move_to_newest(named_key("a"));
  uut.move_to_newest(named_key("absent"));
  const auto lists = *uut.state().arc;
  EXPECT_EQ(names_of(lists.t1), (names{"b/0", "a/0"}));
  EXPECT_TRUE(lists.t2.empty());
}

// -- events -------------------------------------------------------------------

TEST(HostPool, Evt01AnnouncesAChunkOnceItsStoreIsComplete) {
  auto uut = host_pool{small(2), safe_rules};
  auto offer = request_offer("r", 2);
  offer.candidates[0].token_ids = {1, 2, 3, 4};
  offer.candidates[1].token_ids = {5, 6, 7, 8};
  EXPECT_FALSE(uut.prepare_store(offer).refused());
  EXPECT_TRUE(uut.take_events().empty());
  uut.complete_store(keys_of_offer(offer), true);
  uut.complete_store(keys_of_offer(offer), true);
  const auto events = uut.take_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, cache_event::kind_t::stored);
  EXPECT_EQ(events[0].medium, cache_medium::host);
  ASSERT_EQ(events[0].stored.size(), 2u);
  const auto& [head, tail] = std::tie(events[0].stored[0], events[0].stored[1]);
  EXPECT_EQ(name_of(head.key), "r0/0");
  EXPECT_FALSE(head.parent.has_value());
  EXPECT_EQ(head.tokens, test_chunk);
  EXPECT_EQ(head.token_ids, (std::vector<std::int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(tail.parent, head.key);
  EXPECT_EQ(tail.token_ids, (std::vector<std::int32_t>{5, 6, 7, 8}));
}

TEST(HostPool, Evt01AnnouncesWhatWasEvictedAndKeepsEventsOverAReset) {
  auto uut = host_pool{small(1), safe_rules};
  store(uut, named_keys({"a"}));
  EXPECT_EQ(uut.take_events().size(), 1u);
  EXPECT_FALSE(uut.prepare_store(offer_of(named_keys({"b"}))).refused());
  uut.reset({});
  const auto events = uut.take_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, cache_event::kind_t::removed);
  EXPECT_EQ(names_of(events[0].removed), (names{"a/0"}));
}

TEST(HostPool, SaysNothingOfAFailedStore) {
  auto uut = host_pool{small(1), safe_rules};
  EXPECT_FALSE(uut.prepare_store(offer_of(named_keys({"a"}))).refused());
  uut.complete_store(named_keys({"a"}), false);
  EXPECT_TRUE(uut.take_events().empty());
}

} // namespace
} // namespace kvtide::core
