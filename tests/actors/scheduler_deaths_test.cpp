// SPDX-License-Identifier: Apache-2.0

/// @file
/// The scheduler when an actor dies that it works with, after each message of
/// a call.

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

namespace kvtide::test {
namespace {

/// More messages than any of the calls below leads to.
constexpr std::size_t many = 12;

/// The runtime serves and nothing is left over.
void expect_service(test_system& sys) {
  sys.add(Z, 8);
  EXPECT_EQ(sys.lookup(Z), 0);
  const auto plan = sys.step({{{Z, 8, {{90, 91}}}}, {}});
  ASSERT_THAT(sys.jobs().size(), 1u) << plan;
  sys.done(sys.jobs().front());
  EXPECT_EQ(sys.host(Z, 1), "hit");
  (void)sys.finish(Z, finish_reason::stop);
  (void)sys.step();
  EXPECT_TRUE(sys.empty());
  EXPECT_EQ(sys.counters().order_errors, 0u);
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

// -- a request actor ----------------------------------------------------------

TEST(Deaths, RequestWhileItsStepIsPlanned) {
  for (std::size_t n = 0; n < many; ++n) {
    SCOPED_TRACE(n);
    auto sys = test_system{plain_options()};
    sys.add(R, 8);
    sys.add(Q, 4);
    sys.doom_request(R, n);
    const auto plan = sys.step({{{R, 8, {{1, 2}}}, {Q, 4, {{3}}}}, {}});
    const auto stored = plan.find("R#") != std::string::npos;
    EXPECT_NE(plan.find("Q#0<-3"), std::string::npos) << plan;
    EXPECT_EQ(sys.counters().lost_requests, 1u);
    EXPECT_THAT(sys.tracked(), ElementsAre(Q, R));
    for (auto job : sys.jobs())
      sys.done(job);
    EXPECT_EQ(sys.host(R, 1), stored ? "hit" : "miss");
    // It goes on without the cache.
    sys.out(R, 5);
    EXPECT_EQ(sys.step({{{R, 5, {{4, 5}}}}, {}}), "-");
    (void)sys.finish(R, finish_reason::stop);
    (void)sys.finish(Q, finish_reason::stop);
    EXPECT_EQ(sys.step(), "-");
    EXPECT_THAT(sys.tracked(), IsEmpty());
    expect_service(sys);
  }
}

TEST(Deaths, RequestWhileItIsLookedUp) {
  for (std::size_t n = 0; n < many; ++n) {
    SCOPED_TRACE(n);
    auto sys = test_system{plain_options()};
    warm(sys, P, {{1, 2}}, 8);
    sys.add(R, 9, {P, 8});
    sys.doom_request(R, n);
    const auto hit = sys.lookup(R);
    ASSERT_TRUE(hit);
    if (*hit > 0) { // It had said its keys.
      sys.alloc(R, {{4, 5, 6}}, *hit);
      EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 0 []"));
    }
    EXPECT_EQ(sys.lookup(R), 0);
    sys.alloc(R, {{4, 5, 6}}, 0);
    EXPECT_EQ(sys.counters().held_slots, 0u);
    EXPECT_EQ(sys.step({{{R, 9, {{4, 5, 6}}}}, {}}), "-");
    EXPECT_EQ(sys.step({{}, {R}}), "-");
    EXPECT_EQ(sys.step({{{R, 9, {{7, 8, 9}}}}, {}}), "-");
    (void)sys.finish(R, finish_reason::abort);
    EXPECT_EQ(sys.step(), "-");
    expect_service(sys);
  }
}

TEST(Deaths, RequestWhileItIsAllocated) {
  for (std::size_t n = 0; n < many; ++n) {
    SCOPED_TRACE(n);
    auto sys = test_system{plain_options()};
    warm(sys, P, {{1, 2}}, 8);
    sys.add(R, 9, {P, 8});
    EXPECT_EQ(sys.lookup(R), 8);
    sys.doom_request(R, n);
    sys.alloc(R, {{4, 5, 6}}, 8);
    const auto loads = sys.jobs();
    if (loads.empty()) {
      EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 0 []"));
    } else { // It had said what to load, and its job ends as any other.
      (void)sys.step();
      sys.done(loads.front());
      EXPECT_THAT(sys.notices(), ElementsAre("load_done R 1"));
    }
    EXPECT_EQ(sys.counters().held_slots, 0u);
    EXPECT_EQ(sys.counters().pinned_slots, 0u);
    EXPECT_EQ(sys.step({{{R, 1, {{4, 5, 6}}}}, {}}), "-");
    (void)sys.finish(R, finish_reason::stop);
    EXPECT_EQ(sys.step(), "-");
    expect_service(sys);
  }
}

TEST(Deaths, RequestWithASlidingGroupThatIsRefused) {
  auto sys = test_system{full_and_sliding(8), 2};
  sys.add(P, 4);
  EXPECT_EQ(sys.step({{{P, 4, {{1}, {21}}}}, {}}), "S0{P#0/0<-1,P#0/1<-21}");
  sys.add(R, 4);
  EXPECT_EQ(sys.step({{{R, 4, {{2}, {22}}}}, {}}), "-") << "no room";
  EXPECT_EQ(sys.counters().sliding_entries, 2u);
  sys.doom_request(R);
  EXPECT_EQ(sys.counters().sliding_entries, 1u) << "only P's";
  sys.done(0);
  EXPECT_EQ(sys.step(), "-") << "nobody waits for the room";
  (void)sys.finish(P, finish_reason::stop);
  (void)sys.finish(R, finish_reason::stop);
  (void)sys.step();
  EXPECT_TRUE(sys.empty());
  EXPECT_EQ(sys.counters().order_errors, 0u);
}

TEST(Deaths, TheNormalEndOfARequestIsNone) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1, 2}}, 8);
  EXPECT_EQ(sys.counters().lost_requests, 0u);
}

// -- a worker -----------------------------------------------------------------

TEST(Deaths, BlocksOfALoadStayReservedUntilTheDeviceIsGoneToo) {
  auto sys = test_system{with_ranks(2)};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  sys.alloc(R, {{4, 5, 6}}, 8);
  (void)sys.step();
  sys.kill_worker(1);
  sys.done(1, {rank_id{0}});
  EXPECT_THAT(sys.notices(),
              ElementsAre("rank_lost 1", "load_failed R 1 from 0 [4 5] new"));
  EXPECT_EQ(sys.counters().pinned_slots, 2u);
  EXPECT_THAT(sys.finish(R, finish_reason::abort), ElementsAre(4u, 5u));
  (void)sys.step();
  sys.kill_orphan(1);
  EXPECT_THAT(sys.notices(), ElementsAre("released R [4 5]"));
  EXPECT_TRUE(sys.empty());
}

TEST(Deaths, SlotsOfAStoreStayOutOfUseUntilTheDeviceIsGoneToo) {
  auto sys = test_system{with_ranks(2)};
  sys.add(R, 4);
  (void)sys.step({{{R, 4, {{1}}}}, {}});
  (void)sys.step();
  sys.kill_worker(1);
  EXPECT_EQ(sys.host(R, 0), "pending") << "rank 0 still writes";
  sys.done(0, {rank_id{0}});
  EXPECT_EQ(sys.host(R, 0), "miss");
  EXPECT_EQ(sys.counters().quarantined_slots, 1u);
  sys.kill_orphan(1);
  EXPECT_EQ(sys.counters().quarantined_slots, 0u);
  EXPECT_EQ(sys.counters().free_slots, 64u);
}

TEST(Deaths, ADeviceMayOutliveTheNextLifeOfItsRank) {
  auto sys = test_system{with_ranks(2)};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  sys.alloc(R, {{4, 5, 6}}, 8);
  (void)sys.step();
  sys.kill_worker(1);
  sys.restart_rank(1, 64);
  EXPECT_THAT(sys.notices(), ElementsAre("rank_lost 1", "rank_back 1"));
  sys.done(1, {rank_id{0}});
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 0 [4 5] new"));
  // The next life does not speak for the copies of the one before.
  sys.pass(std::chrono::minutes{1});
  EXPECT_THAT(sys.notices(), IsEmpty());
  EXPECT_EQ(sys.counters().quarantined_slots, 2u);
  sys.kill_orphan(1);
  EXPECT_THAT(sys.notices(), ElementsAre("released R [4 5]"));
  EXPECT_EQ(sys.counters().quarantined_slots, 0u);
  (void)sys.finish(R, finish_reason::abort);
  (void)sys.step();
  expect_service(sys);
}

// -- the cache manager --------------------------------------------------------

void expect_new_cache(test_system& sys) {
  EXPECT_EQ(sys.counters().lost_caches, 1u);
  EXPECT_THAT(sys.notices(), Contains("cache_lost"));
  EXPECT_EQ(sys.host(P, 0), "miss");
  EXPECT_EQ(sys.counters().host_slots, 64u);
}

TEST(Deaths, CacheManagerWhileAStepIsPlanned) {
  for (std::size_t n = 0; n < many; ++n) {
    SCOPED_TRACE(n);
    auto sys = test_system{plain_options()};
    warm(sys, P, {{1, 2}}, 8);
    sys.add(R, 8);
    sys.doom_cache(n);
    const auto plan = sys.step({{{R, 8, {{3, 4}}}}, {}});
    expect_new_cache(sys);
    if (plan != "-") {
      EXPECT_EQ(plan, "S1{R#0<-3,R#1<-4}");
      // The copy runs still, and nobody else gets its slots (R9).
      EXPECT_EQ(sys.counters().quarantined_slots, 2u);
      sys.done(1);
      EXPECT_EQ(sys.host(R, 0), "miss") << "S11";
    }
    EXPECT_EQ(sys.counters().free_slots, 64u);
    sys.out(R, 1);
    const auto again = sys.step({{{R, 1, {{5}}}}, {}});
    EXPECT_NE(again.find("{R#0<-3,R#1<-4}"), std::string::npos) << again;
    sys.done(sys.jobs());
    (void)sys.finish(R, finish_reason::stop);
    (void)sys.step();
    expect_service(sys);
  }
}

TEST(Deaths, CacheManagerWhileARequestIsLookedUp) {
  for (std::size_t n = 0; n < many; ++n) {
    SCOPED_TRACE(n);
    auto sys = test_system{plain_options()};
    warm(sys, P, {{1, 2}}, 8);
    sys.add(R, 9, {P, 8});
    sys.doom_cache(n);
    EXPECT_TRUE(sys.lookup(R));
    expect_new_cache(sys);
    EXPECT_EQ(sys.lookup(R), 0);
    (void)sys.finish(R, finish_reason::abort);
    (void)sys.step();
    expect_service(sys);
  }
}

TEST(Deaths, CacheManagerWhileARequestIsAllocated) {
  for (std::size_t n = 0; n < many; ++n) {
    SCOPED_TRACE(n);
    auto sys = test_system{plain_options()};
    warm(sys, P, {{1, 2}}, 8);
    sys.add(R, 9, {P, 8});
    EXPECT_EQ(sys.lookup(R), 8);
    sys.doom_cache(n);
    sys.alloc(R, {{4, 5, 6}}, 8);
    EXPECT_EQ(sys.counters().lost_caches, 1u);
    const auto plan = sys.step();
    if (plan != "-") { // It was planned before; the notice still comes (S11).
      EXPECT_EQ(plan, "L1{R#0->4,R#1->5} flush{1}");
      EXPECT_EQ(sys.counters().quarantined_slots, 2u);
      sys.done(1);
      EXPECT_THAT(sys.notices(), ElementsAre("cache_lost", "load_done R 1"));
    } else {
      EXPECT_THAT(
        sys.notices(),
        UnorderedElementsAre("cache_lost", "load_failed R 1 from 0 [4 5]"));
    }
    (void)sys.finish(R, finish_reason::abort);
    (void)sys.step();
    expect_service(sys);
  }
}

TEST(Deaths, CacheManagerWhileAFailedStoreIsRolledBack) {
  for (std::size_t n = 0; n < many; ++n) {
    SCOPED_TRACE(n);
    auto sys = test_system{with_ranks(2)};
    sys.add(R, 4);
    EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
    (void)sys.step();
    sys.fail_and_kill_cache(0, n);
    EXPECT_EQ(sys.counters().lost_caches, 1u);
    EXPECT_THAT(sys.jobs(), IsEmpty());
    sys.out(R, 1);
    EXPECT_EQ(sys.step({{{R, 1, {{2}}}}, {}}), "S1{R#0<-1}");
    sys.done(1);
    (void)sys.finish(R, finish_reason::stop);
    (void)sys.step();
    expect_service(sys);
  }
}

TEST(Deaths, CacheManagerWhileItsEventsAndNumbersAreAsked) {
  for (std::size_t n = 0; n < many; ++n) {
    SCOPED_TRACE(n);
    auto sys = test_system{plain_options()};
    warm(sys, P, {{1, 2}}, 8);
    sys.doom_cache(n);
    (void)sys.events();
    sys.doom_cache(n);
    (void)sys.counters();
    EXPECT_EQ(sys.counters().lost_caches, 2u);
    expect_service(sys);
  }
}

TEST(Deaths, CacheManagerThatDiesNowAndThenIsReplacedEachTime) {
  auto sys = test_system{plain_options()};
  sys.add(R, 4);
  for (auto i = 0; i < 4; ++i) {
    sys.kill_cache();
    EXPECT_EQ(sys.lookup(R), 0); // This one has answered.
  }
  EXPECT_EQ(sys.counters().host_slots, 64u);
}

TEST(Deaths, CacheManagerThatDiesAtOnceIsGivenUpUntilAReset) {
  auto sys = test_system{plain_options()};
  for (auto i = 0; i < 3; ++i)
    sys.kill_cache();
  EXPECT_THAT(sys.notices(),
              ElementsAre("cache_lost", "cache_lost", "cache_lost"));
  EXPECT_EQ(sys.counters().host_slots, 0u);
  sys.add(R, 4);
  EXPECT_EQ(sys.lookup(R), 0);
  EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "-");
  sys.reset();
  EXPECT_EQ(sys.step({{{R, 0, {}}}, {}}), "S0{R#0<-1}");
  sys.done(0);
  (void)sys.finish(R, finish_reason::stop);
  (void)sys.step();
  expect_service(sys);
}

} // namespace
} // namespace kvtide::test
