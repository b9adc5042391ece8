// SPDX-License-Identifier: Apache-2.0

/// @file
/// What stays in the pool when a rank's memory is another one.

#include "core/host_pool.hpp"
#include "tests/core/pool_keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::core {
namespace {

using slots = std::vector<slot_id>;

host_pool::config small(std::size_t count,
                        eviction_policy policy = eviction_policy::lru) {
  return {count, policy, 1, {test_chunk, test_chunk}};
}

slots store(host_pool& uut, const std::vector<chunk_key>& keys) {
  const auto grant = uut.prepare_store(offer_of(keys));
  EXPECT_FALSE(grant.refused());
  uut.complete_store(keys, true);
  auto out = slots{};
  for (const auto& chunk : grant.accepted)
    out.push_back(chunk.slot);
  return out;
}

slots start_store(host_pool& uut, const std::vector<chunk_key>& keys) {
  auto out = slots{};
  for (const auto& chunk : uut.prepare_store(offer_of(keys)).accepted)
    out.push_back(chunk.slot);
  return out;
}

kept_chunk in(slot_id slot, std::string_view name) {
  return {slot, wide_digest_of(named_key(name))};
}

bool has(const host_pool& uut, std::string_view name) {
  return uut.find(named_key(name)).has_value();
}

std::vector<std::string> removed(host_pool& uut) {
  auto out = std::vector<std::string>{};
  for (const auto& event : uut.take_events())
    for (const auto& key : event.removed)
      out.push_back(name_of(key));
  return out;
}

TEST(HostPoolKeep, KeepsWhatIsNamedUnderItsOwnKeyAndSlot) {
  for (auto policy : {eviction_policy::lru, eviction_policy::arc}) {
    auto uut = host_pool{small(4, policy), safe_rules};
    ASSERT_EQ(store(uut, named_keys({"a", "b", "c", "d"})),
              (slots{0, 1, 2, 3}));
    (void)uut.take_events();
    uut.keep(std::vector{in(0, "x"), in(1, "c"), in(2, "b"), in(3, "d"),
                         in(4, "a"), in(99, "a")},
             {});
    EXPECT_FALSE(has(uut, "a")) << "another key in its slot";
    EXPECT_FALSE(has(uut, "b"));
    EXPECT_FALSE(has(uut, "c")) << "in another slot";
    EXPECT_TRUE(has(uut, "d"));
    EXPECT_THAT(removed(uut), ElementsAre("a/0", "b/0", "c/0"));
    EXPECT_EQ(uut.state().free, 3u);
    EXPECT_EQ(uut.state().evictable, 1u);
    EXPECT_EQ(uut.prepare_load(named_keys({"d"})).slots, (slots{3}));
    uut.complete_load(named_keys({"d"}));
    EXPECT_EQ(store(uut, named_keys({"e", "f", "g", "h"})), (slots{3, 0, 1, 2}))
      << "all others are free, and what stayed can go";
  }
}

TEST(HostPoolKeep, KeepsTheOrderInWhichTheyWouldGo) {
  auto uut = host_pool{small(4), safe_rules};
  store(uut, named_keys({"a"}));
  store(uut, named_keys({"b"}));
  store(uut, named_keys({"c"}));
  store(uut, named_keys({"d"}));
  uut.touch(named_keys({"b"}));
  uut.keep(std::vector{in(0, "a"), in(1, "b"), in(3, "d")}, {});
  EXPECT_THAT(names_of(*uut.state().lru), ElementsAre("a/0", "d/0", "b/0"));
}

// A late copy of the life before wrote half of it; a label was older.
TEST(HostPoolKeep, S8DropsWhatIsBeingWrittenEvenIfItIsNamed) {
  for (auto policy : {eviction_policy::lru, eviction_policy::arc}) {
    auto uut = host_pool{small(3, policy), safe_rules};
    store(uut, named_keys({"a"}));
    ASSERT_EQ(start_store(uut, named_keys({"w"})), (slots{1}));
    (void)uut.take_events();
    uut.keep(std::vector{in(0, "a"), in(1, "w")}, slots{1});
    EXPECT_FALSE(has(uut, "w"));
    EXPECT_THAT(removed(uut), IsEmpty()) << "it was never announced";
    EXPECT_EQ(uut.state().quarantined, 1u);
    EXPECT_EQ(uut.state().writing, 0u);
    EXPECT_EQ(uut.state().free, 1u);
    EXPECT_FALSE(uut.complete_store(named_keys({"w"}), true).gained);
    EXPECT_EQ(start_store(uut, named_keys({"x"})), (slots{2}));
    EXPECT_TRUE(uut.release_slots(slots{1}));
    EXPECT_EQ(start_store(uut, named_keys({"w"})), (slots{1}))
      << "as if it had never been there";
  }
}

TEST(HostPoolKeep, S8DropsWhatALoadStillReads) {
  auto uut = host_pool{small(2), safe_rules};
  store(uut, named_keys({"a", "b"}));
  (void)uut.take_events();
  ASSERT_EQ(uut.prepare_load(named_keys({"a"}), true).slots, (slots{0}));
  uut.keep(std::vector{in(0, "a"), in(1, "b")}, slots{0});
  EXPECT_FALSE(has(uut, "a"));
  EXPECT_THAT(removed(uut), ElementsAre("a/0"));
  EXPECT_EQ(uut.state().free, 0u);
  EXPECT_EQ(uut.state().quarantined, 1u);
  EXPECT_EQ(start_store(uut, named_keys({"c"})), (slots{1}))
    << "b goes, as nothing else can";
}

TEST(HostPoolKeep, ReferenceHandsSlotsOfRunningCopiesOut) {
  auto uut = host_pool{small(2), reference_rules};
  store(uut, named_keys({"a"}));
  ASSERT_EQ(start_store(uut, named_keys({"w"})), (slots{1}));
  uut.keep(std::vector{in(0, "a")}, slots{1}, false);
  EXPECT_EQ(uut.state().quarantined, 0u);
  EXPECT_EQ(start_store(uut, named_keys({"x"})), (slots{1}));
}

TEST(HostPoolKeep, EndsPromisesButKeepsWhatTheyHeld) {
  for (auto policy : {eviction_policy::lru, eviction_policy::arc}) {
    auto uut = host_pool{small(2, policy), safe_rules};
    store(uut, named_keys({"a", "b"}));
    ASSERT_TRUE(uut.hold(1, slots{0}));
    uut.keep(std::vector{in(0, "a"), in(1, "b")}, {});
    EXPECT_EQ(uut.state().held, 0u);
    EXPECT_EQ(uut.state().evictable, 2u);
    EXPECT_FALSE(uut.release(1));
    EXPECT_TRUE(uut.hold(1, slots{0, 1})) << "the number is free";
    EXPECT_TRUE(uut.release(1));
    EXPECT_EQ(start_store(uut, named_keys({"x", "y"})).size(), 2u);
  }
}

TEST(HostPoolKeep, IsAResetThatTellsIfNothingStays) {
  auto uut = host_pool{small(2, eviction_policy::arc), safe_rules};
  store(uut, named_keys({"a", "b"}));
  store(uut, named_keys({"c"})); // Leaves a ghost.
  ASSERT_FALSE(uut.state().arc->b1.empty());
  ASSERT_EQ(start_store(uut, named_keys({"w"})).size(), 1u);
  (void)uut.take_events();
  uut.keep({}, slots{0});
  EXPECT_THAT(removed(uut), ElementsAre("c/0"));
  EXPECT_TRUE(uut.state().arc->b1.empty());
  EXPECT_EQ(uut.state().free, 1u);
  EXPECT_EQ(uut.state().quarantined, 1u);
}

TEST(HostPoolKeep, SaysNothingIfEventsAreOff) {
  auto cfg = small(2);
  cfg.events = false;
  auto uut = host_pool{cfg, safe_rules};
  store(uut, named_keys({"a", "b"}));
  uut.keep(std::vector{in(1, "b")}, {});
  EXPECT_THAT(uut.take_events(), IsEmpty());
}

TEST(HostPoolKeep, LeavesNoGhostOfWhatNobodyEvicted) {
  auto uut = host_pool{small(3, eviction_policy::arc), safe_rules};
  store(uut, named_keys({"a", "b"}));
  uut.touch(named_keys({"b"}));
  ASSERT_EQ(uut.state().arc->t2.size(), 1u);
  uut.keep(std::vector{in(0, "a")}, {});
  EXPECT_TRUE(uut.state().arc->t2.empty());
  EXPECT_TRUE(uut.state().arc->b1.empty());
  EXPECT_TRUE(uut.state().arc->b2.empty());
  EXPECT_EQ(uut.state().arc->t1.size(), 1u);
}

} // namespace
} // namespace kvtide::core
