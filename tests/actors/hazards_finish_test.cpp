// SPDX-License-Identifier: Apache-2.0

/// @file
/// Public failures of comparable systems (docs/hazards.md), each with the
/// outcome that is right (`safe`): what is stored when a request ends, is
/// preempted, or is the last one.

#include "tests/actors/request_states.hpp"
#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

// The kind: whatever ends it, in every group, under either rule set. Its keys
// are known, and its block tables are empty.
TEST(Hazards, FIN_01_a_request_without_blocks_yields_no_store) {
  for (auto rules : {rule_set::reference, rule_set::safe}) {
    for (auto reason : every_reason) {
      SCOPED_TRACE("reason " + std::to_string(static_cast<int>(reason)));
      auto sys = test_system{full_and_sliding(8, rules)};
      sys.expect_wrong_calls(); // An unknown reason is one (R2).
      sys.add(A, 8);
      EXPECT_EQ(sys.step({{{A, 8, {{1, 2}, {11, 12}}}}, {}}),
                "S0{A#0/0<-1,A#1/0<-2,A#0/1<-11,A#1/1<-12}");
      sys.add(B, 12);
      EXPECT_EQ(sys.lookup(B), 0);
      EXPECT_THAT(sys.finish(B, reason), IsEmpty());
      EXPECT_EQ(sys.step({{{A, 1, {{3}, {13}}}}, {}}), "-");
      EXPECT_THAT(sys.tracked(), ElementsAre(A));
      sys.done(0);
      EXPECT_EQ(sys.host(A, 1), "hit");
      EXPECT_EQ(sys.host(B, 0), "miss");
      sys.add(B, 4); // B ended once and for all: its id is free again.
      EXPECT_THAT(sys.notices(), IsEmpty());
    }
  }
}

TEST(Hazards, FIN_02_an_abort_publishes_computed_tokens_only) {
  auto sys = test_system{plain_options()};
  sys.add(R, 16);
  EXPECT_EQ(sys.step({{{R, 6, {{1, 2, 3, 4}}}}, {}}), "S0{R#0<-1}");
  (void)sys.finish(R, finish_reason::abort);
  EXPECT_EQ(sys.step(), "-");
  sys.done(0);
  for (std::size_t chunk = 1; chunk < 4; ++chunk)
    EXPECT_EQ(sys.host(R, chunk), "miss");
}

TEST(Hazards, FIN_02_an_abort_stores_what_was_refused_before) {
  auto sys = test_system{plain_options(), 1};
  warm(sys, P, {{8}}, 4);
  sys.add(Z, 5, {P, 4});
  EXPECT_EQ(sys.lookup(Z), 4); // Holds the only slot.
  sys.add(R, 16);
  EXPECT_EQ(sys.step({{{R, 6, {{1, 2, 3, 4}}}}, {}}), "-");
  (void)sys.finish(R, finish_reason::abort);
  sys.decline(sys.promise(Z));
  EXPECT_EQ(sys.step(), "S1{R#0<-1}");
}

TEST(Hazards, FIN_03_the_last_sampled_token_is_never_stored) {
  auto sys = test_system{plain_options()};
  sys.add(R, 7);
  EXPECT_EQ(sys.step({{{R, 7, {{1, 2}}}}, {}}), "S0{R#0<-1}");
  sys.out(R, 1);
  (void)sys.finish(R, finish_reason::stop);
  EXPECT_EQ(sys.step(), "-");
  sys.done(0);
  EXPECT_EQ(sys.host(R, 1), "miss");
  sys.add(Q, 12, {R, 8});
  EXPECT_EQ(sys.lookup(Q), 4);
}

TEST(Hazards, FIN_03_all_slots_of_a_prompt_are_stored) {
  auto sys = test_system{plain_options(), 2};
  warm(sys, P, {{8, 9}}, 8);
  sys.add(Z, 9, {P, 8});
  EXPECT_EQ(sys.lookup(Z), 8); // Holds both slots.
  sys.add(R, 8);
  EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "-");
  sys.out(R, 1);
  (void)sys.finish(R, finish_reason::stop);
  sys.decline(sys.promise(Z));
  EXPECT_EQ(sys.step(), "S1{R#0<-1,R#1<-2}");
  sys.done(1);
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

TEST(Hazards, FIN_04_the_last_chunk_of_a_finished_request_is_stored) {
  auto sys = test_system{plain_options()};
  run_to_the_end(sys);
  EXPECT_EQ(sys.step(), "S1{R#1<-2}");
  EXPECT_THAT(sys.tracked(), ElementsAre(R));
  sys.done({0, 1});
  EXPECT_THAT(sys.tracked(), IsEmpty());
  EXPECT_EQ(sys.host(R, 0), "hit");
  EXPECT_EQ(sys.host(R, 1), "hit");
}

// The kind: every reason in every state that a request can be in.
TEST(Hazards, FIN_02_no_reason_and_no_state_lets_an_uncomputed_chunk_through) {
  for (const auto& state : request_states) {
    for (auto reason : every_reason) {
      SCOPED_TRACE(std::string{state.name} + ", reason "
                   + std::to_string(static_cast<int>(reason)));
      auto sys = test_system{plain_options()};
      sys.expect_wrong_calls(); // An unknown reason is one (R2).
      state.reach(sys);
      (void)sys.notices();
      (void)sys.finish(R, reason);
      (void)sys.step();
      for (auto job : sys.jobs())
        sys.done(job);
      EXPECT_EQ(sys.counters().stored_chunks, state.stored);
      EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
      if (state.loads) {
        EXPECT_THAT(sys.notices(), ElementsAre("released R [4 5]"));
      } else {
        EXPECT_THAT(sys.notices(), IsEmpty());
      }
      EXPECT_TRUE(sys.empty());
    }
  }
}

TEST(Hazards, PRE_01_stores_of_a_preempted_request_are_flushed) {
  auto sys = test_system{plain_options()};
  sys.add(R, 9);
  EXPECT_EQ(sys.step({{{R, 9, {{1, 2, 3}}}}, {}}), "S0{R#0<-1,R#1<-2}");
  sys.add(Q, 8);
  EXPECT_EQ(sys.step({{{Q, 8, {{1, 2}}}}, {R}}), "S1{Q#0<-1,Q#1<-2} flush{0}");
  EXPECT_FALSE(sys.computes());
  sys.done(0);
  EXPECT_TRUE(sys.computes());
  sys.done(1);
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

TEST(Hazards, PRE_01_all_stores_are_flushed_and_blocks_need_not_be_reused) {
  auto sys = test_system{plain_options()};
  sys.add(R, 9);
  EXPECT_EQ(sys.step({{{R, 4, {{1, 2, 3}}}}, {}}), "S0{R#0<-1}");
  EXPECT_EQ(sys.step({{{R, 5, {}}}, {}}), "S1{R#1<-2}");
  EXPECT_EQ(sys.step({{}, {R}}), "flush{0,1}");
  EXPECT_FALSE(sys.computes());
  sys.done(0);
  EXPECT_FALSE(sys.computes());
  sys.done(1);
  EXPECT_TRUE(sys.computes());
}

TEST(Hazards, PRE_02_a_request_with_jobs_in_flight_is_deferred) {
  auto sys = test_system{plain_options()};
  sys.add(R, 9);
  (void)sys.step({{{R, 9, {{1, 2, 3}}}}, {}});
  sys.add(Q, 8);
  (void)sys.step({{{Q, 8, {{1, 2}}}}, {R}});
  const auto hits = sys.counters().hit_tokens;
  EXPECT_EQ(sys.lookup(R), defer);
  EXPECT_EQ(sys.counters().hit_tokens, hits);
  EXPECT_EQ(sys.counters().held_slots, 0u) << "the pool was not asked";
  sys.done(0);
  EXPECT_EQ(sys.lookup(R), 8);
  sys.alloc(R, {{5, 6, 7}}, 8);
  EXPECT_EQ(sys.step(), "L2{R#0->5,R#1->6}");
}

TEST(Hazards, PRE_05_a_refused_store_concerns_its_request_only) {
  auto sys = test_system{plain_options(), 2};
  warm(sys, P, {{8, 9}}, 8);
  sys.add(Z, 9, {P, 8});
  EXPECT_EQ(sys.lookup(Z), 8);
  sys.alloc(Z, {{11, 12, 13}}, 8);
  EXPECT_EQ(sys.step(), "L1{Z#0->11,Z#1->12}");
  sys.add(A, 8);
  sys.add(B, 8);
  EXPECT_EQ(sys.step({{{A, 8, {{1, 2}}}, {B, 8, {{3, 4}}}}, {}}), "-");
  sys.done(1);
  sys.out(A, 1);
  sys.out(B, 1);
  EXPECT_EQ(sys.step({{{A, 1, {{5}}}, {B, 1, {{6}}}}, {}}),
            "S2{A#0<-1,A#1<-2}");
  // B's table is whole: it stores once A's chunks are idle.
  sys.done(2);
  EXPECT_EQ(sys.step(), "S3{B#0<-3,B#1<-4}");
  sys.done(3);
  // What was appended meanwhile is where it belongs.
  sys.out(A, 3);
  EXPECT_EQ(sys.step({{{A, 3, {}}}, {}}), "S4{A#2<-5}");
  sys.done(4);
  sys.out(B, 3);
  EXPECT_EQ(sys.step({{{B, 3, {}}}, {}}), "S5{B#2<-6}");
  sys.done(5);
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

TEST(Hazards, DRN_01_the_last_request_is_stored_by_empty_steps) {
  auto sys = test_system{plain_options()};
  sys.add(R, 8);
  (void)sys.step({{{R, 8, {{1, 2}}}}, {}});
  sys.out(R, 1);
  (void)sys.finish(R, finish_reason::length);
  EXPECT_EQ(sys.step(), "-");
  EXPECT_TRUE(sys.pending_work());
  EXPECT_THAT(sys.device_log(), ::testing::Contains("submit 0"));
  // A new request does not wait for the slow store.
  sys.add(Q, 4);
  EXPECT_EQ(sys.lookup(Q), 0);
  EXPECT_EQ(sys.step({{{Q, 3, {{3}}}}, {}}), "-");
  EXPECT_TRUE(sys.computes());
  sys.done(0);
  EXPECT_EQ(sys.step(), "-");
  EXPECT_FALSE(sys.pending_work());
  EXPECT_EQ(sys.host(R, 0), "hit");
  EXPECT_EQ(sys.host(R, 1), "hit");
}

TEST(Hazards, DRN_03_a_request_ends_between_its_last_plan_and_its_outcome) {
  auto sys = test_system{plain_options()};
  run_to_the_end(sys);
  sys.done(0);
  EXPECT_EQ(sys.host(R, 1), "miss");
  EXPECT_THAT(sys.tracked(), ElementsAre(R)) << "not before its last plan";
  EXPECT_EQ(sys.step(), "S1{R#1<-2}");
  EXPECT_EQ(sys.host(R, 1), "pending");
  EXPECT_EQ(sys.step(), "-") << "nothing is submitted afterwards";
  sys.done(1);
  EXPECT_THAT(sys.tracked(), IsEmpty());
  EXPECT_EQ(sys.counters().order_errors, 0u);
}

} // namespace
} // namespace kvtide::test
