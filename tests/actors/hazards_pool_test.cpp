// SPDX-License-Identifier: Apache-2.0

/// @file
/// Public failures of comparable systems (docs/hazards.md), each with the
/// outcome that is right (`safe`): which chunks the host pool keeps, and what
/// it says about them.

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

TEST(Hazards, POL_01_a_store_removes_no_chunk_of_its_own_request) {
  for (auto policy : {eviction_policy::lru, eviction_policy::arc}) {
    auto opts = plain_options();
    opts.policy = policy;
    auto sys = test_system{opts, 4};
    warm(sys, P, {{1, 2, 3}}, 12);
    warm(sys, X, {{8}}, 4);
    // Full: P#0 to P#2 and X#0, and P is older.
    sys.add(R, 20, {P, 12});
    EXPECT_EQ(sys.lookup(R, 12), 0);
    // R#4 has no room: only X may go.
    EXPECT_EQ(sys.step({{{R, 8, {{1, 2, 3, 4, 5}}}}, {}}), "S2{R#3<-4}");
    EXPECT_EQ(sys.counters().refused_stores, 1u);
    EXPECT_EQ(sys.host(X, 0), "miss");
    EXPECT_EQ(sys.host(P, 0), "hit");
    EXPECT_EQ(sys.host(P, 1), "hit");
    EXPECT_EQ(sys.host(P, 2), "hit");
  }
}

TEST(Hazards, POL_03_the_tail_of_a_request_is_older_than_its_head) {
  for (auto policy : {eviction_policy::lru, eviction_policy::arc}) {
    auto opts = plain_options();
    opts.policy = policy;
    auto sys = test_system{opts, 3};
    sys.add(R, 12);
    (void)sys.step({{{R, 4, {{1, 2, 3}}}}, {}});
    (void)sys.step({{{R, 4, {}}}, {}});
    (void)sys.step({{{R, 4, {}}}, {}});
    sys.done({2, 0, 1});
    (void)sys.finish(R, finish_reason::abort);
    (void)sys.step();
    sys.add(Q, 4);
    EXPECT_EQ(sys.step({{{Q, 4, {{9}}}}, {}}), "S3{Q#0<-9}");
    EXPECT_EQ(sys.host(R, 2), "miss");
    sys.add(Z, 12, {R, 12});
    EXPECT_EQ(sys.lookup(Z), 8);
  }
}

TEST(Hazards, POL_06_a_chunk_that_is_being_stored_is_not_stored_again) {
  for (auto policy : {eviction_policy::lru, eviction_policy::arc}) {
    auto opts = plain_options();
    opts.policy = policy;
    auto sys = test_system{opts};
    sys.add(R, 4);
    EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
    sys.add(Q, 5, {R, 4});
    EXPECT_EQ(sys.lookup(Q, 4), 0);
    EXPECT_EQ(sys.step({{{Q, 1, {{1, 2}}}}, {}}), "-");
    sys.fail(0);
    EXPECT_EQ(sys.step({{{R, 0, {}}, {Q, 0, {}}}, {}}), "S1{R#0<-1}");
    sys.done(1);
    sys.add(Z, 5, {R, 4});
    EXPECT_EQ(sys.lookup(Z), 4);
  }
}

TEST(Hazards, EVT_01_events_say_what_is_where_after_it_is_there) {
  for (auto policy : {eviction_policy::lru, eviction_policy::arc}) {
    auto opts = plain_options();
    opts.policy = policy;
    auto sys = test_system{opts, 2};
    sys.add(R, 8);
    EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1,R#1<-2}");
    EXPECT_THAT(sys.events(), IsEmpty());
    sys.done(0);
    EXPECT_THAT(sys.events(),
                ElementsAre("stored R#0 behind none, 4 of 4 tokens",
                            "stored R#1 behind R#0, 4 of 4 tokens"));
    EXPECT_THAT(sys.events(), IsEmpty());
    (void)sys.finish(R, finish_reason::abort);
    sys.add(Q, 4);
    EXPECT_EQ(sys.step({{{Q, 4, {{3}}}}, {}}), "S1{Q#0<-3}");
    EXPECT_THAT(sys.events(), ElementsAre("removed R#1"));
  }
}

TEST(Hazards, EVT_01_the_first_chunk_says_what_the_prompt_follows) {
  auto sys = test_system{plain_options()};
  auto how = add_with{};
  how.parent = {"77", 2};
  sys.add(R, 4, how);
  EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
  sys.out(R, 4); // What comes with later hashes is no parent.
  EXPECT_EQ(sys.step({{{R, 4, {{2}}}}, {}}), "S1{R#1<-2}");
  sys.done({0, 1});
  EXPECT_THAT(sys.events(),
              ElementsAre("stored R#0 behind ?, 4 of 4 tokens",
                          "stored R#1 behind R#0, 4 of 4 tokens"));
}

TEST(Hazards, EVT_01_what_never_was_there_is_never_announced) {
  auto sys = test_system{plain_options(), 2};
  sys.add(R, 4);
  EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
  sys.fail(0);
  EXPECT_THAT(sys.events(), IsEmpty());
  EXPECT_EQ(sys.step({{{R, 0, {}}}, {}}), "S1{R#0<-1}");
  EXPECT_THAT(sys.reset(), ElementsAre(1u));
  sys.done(1);
  EXPECT_THAT(sys.events(), IsEmpty()) << "older than the reset (S11)";
  EXPECT_EQ(sys.step({{{R, 0, {}}}, {}}), "S2{R#0<-1} flush{1}");
  sys.done(2);
  EXPECT_THAT(sys.events(),
              ElementsAre("stored R#0 behind none, 4 of 4 tokens"));
}

TEST(Hazards, EVT_01_a_chunk_is_announced_when_every_rank_has_it) {
  auto sys = test_system{with_ranks(2)};
  sys.add(R, 4);
  EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
  sys.done(0, {rank_id{1}});
  EXPECT_THAT(sys.events(), IsEmpty());
  sys.done(0, {rank_id{0}});
  EXPECT_EQ(sys.events().size(), 1u);
}

TEST(Hazards, CNT_02_the_number_of_store_jobs_is_bounded) {
  auto opts = plain_options();
  opts.max_store_jobs = 2;
  auto sys = test_system{opts};
  for (request_id id : {A, B, Q})
    sys.add(id, 4);
  EXPECT_EQ(sys.step({{{A, 4, {{1}}}}, {}}), "S0{A#0<-1}");
  EXPECT_EQ(sys.step({{{B, 4, {{2}}}}, {}}), "S1{B#0<-2}");
  EXPECT_EQ(sys.step({{{Q, 4, {{3}}}}, {}}), "-");
  EXPECT_THAT(sys.notices(), ElementsAre("overload 2"));
  sys.done(0);
  EXPECT_EQ(sys.step(), "S2{Q#0<-3}") << "refused for now only";
  EXPECT_THAT(sys.notices(), IsEmpty());
}

} // namespace
} // namespace kvtide::test
