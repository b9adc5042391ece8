// SPDX-License-Identifier: Apache-2.0

/// @file
/// The scheduler when an actor dies that it works with, after each message of
/// a call.

#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

constexpr request_id P = 'P';
constexpr request_id Q = 'Q';
constexpr request_id R = 'R';

/// More messages than any of the calls below leads to.
constexpr std::size_t many = 12;

/// Stores two chunks of P, which has ended.
void keep_two_chunks(test_system& sys) {
  sys.add(P, 8);
  (void)sys.step({{{P, 8, {{1, 2}}}}, {}});
  sys.done(0);
  (void)sys.finish(P, finish_reason::stop);
  (void)sys.step();
  (void)sys.notices();
}

/// The runtime serves and nothing is left over.
void expect_service(test_system& sys) {
  sys.add('Z', 8);
  EXPECT_EQ(sys.lookup('Z'), 0);
  const auto plan = sys.step({{{'Z', 8, {{90, 91}}}}, {}});
  ASSERT_THAT(sys.jobs().size(), 1u) << plan;
  sys.done(sys.jobs().front());
  EXPECT_EQ(sys.host('Z', 1), "hit");
  (void)sys.finish('Z', finish_reason::stop);
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
    keep_two_chunks(sys);
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
    keep_two_chunks(sys);
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
  auto opts = plain_options();
  opts.groups.push_back({4, 8, false});
  auto sys = test_system{opts, 2};
  sys.add(P, 4);
  EXPECT_EQ(sys.step({{{P, 4, {{1}, {21}}}}, {}}), "S0{P#0/0<-1,P#0/1<-21}");
  sys.add(R, 4);
  EXPECT_EQ(sys.step({{{R, 4, {{2}, {22}}}}, {}}), "-") << "no room";
  sys.doom_request(R);
  EXPECT_GT(sys.counters().sliding_entries, 0u);
  sys.done(0);
  EXPECT_EQ(sys.step(), "-") << "nobody waits for the room";
  EXPECT_EQ(sys.counters().sliding_entries, 1u) << "only P's";
  (void)sys.finish(P, finish_reason::stop);
  (void)sys.finish(R, finish_reason::stop);
  (void)sys.step();
  EXPECT_TRUE(sys.empty());
  EXPECT_EQ(sys.counters().order_errors, 0u);
}

TEST(Deaths, TheNormalEndOfARequestIsNone) {
  auto sys = test_system{plain_options()};
  keep_two_chunks(sys);
  EXPECT_EQ(sys.counters().lost_requests, 0u);
}

} // namespace
} // namespace kvtide::test
