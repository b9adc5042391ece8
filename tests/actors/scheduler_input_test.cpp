// SPDX-License-Identifier: Apache-2.0

/// @file
/// What an engine or a rank must not do, and what then comes of it: an error or
/// a count, never a wrong chunk, a hang or a crash.

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

constexpr auto huge = std::numeric_limits<token_count>::max();
constexpr auto tiny = std::numeric_limits<token_count>::min();

/// P's two chunks are in the host pool, and R is told that it may load them.
void offer_a_load(test_system& sys) {
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
}

// -- outputs -----------------------------------------------------------------

TEST(Input, outputs_that_come_after_the_finish_do_not_change_what_it_said) {
  auto sys = test_system{plain_options()};
  sys.expect_wrong_calls();
  sys.add(R, 12);
  EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1,R#1<-2}");
  EXPECT_EQ(sys.step({{{R, 3, {{3}}}}, {}}), "-");
  sys.raw_finish({R, finish_reason::abort, 12, 11});
  sys.raw_outputs({2, {{R, 13, 12}}});
  EXPECT_EQ(sys.step(), "-") << "the last token of chunk 2 was not computed";
  EXPECT_EQ(sys.counters().order_errors, 1u);
}

// -- block tables -------------------------------------------------------------

TEST(Input, new_blocks_without_a_table_are_not_stored_in_a_wrong_place) {
  auto sys = test_system{plain_options()};
  sys.expect_wrong_calls();
  sys.add(R, 12);
  EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
  sys.done(0);
  (void)sys.lookup(R); // It runs: its table is gone now.
  sys.set_computed(R, 4);
  const auto before = sys.counters().order_errors;
  EXPECT_EQ(sys.step({{{R, 8, {{2, 3}}}}, {}}), "-");
  EXPECT_EQ(sys.counters().order_errors, before + 1);
  EXPECT_EQ(sys.step({{}, {R}}), "-");
  EXPECT_EQ(sys.step({{{R, 12, {{4, 5, 6}}}}, {}}), "S1{R#1<-5,R#2<-6}");
  sys.done(1);
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

TEST(Input, a_malformed_row_ends_what_is_stored_of_its_request) {
  const auto malformed = std::vector<step_row>{
    {R, row_kind::running, {{2}, {3}}, 4, 4, 12},
    {R, row_kind::running, {{2}}, -1, 4, 12},
    {R, row_kind::running, {{2}}, 4, huge, 12},
    {R, row_kind::running, {{2}}, 4, 4, tiny},
  };
  for (const auto& row : malformed) {
    auto sys = test_system{plain_options()};
    sys.expect_wrong_calls();
    sys.add(R, 12);
    EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
    auto call = step_call{};
    call.step = 2;
    call.rows = {row};
    sys.raw_step(call);
    call.step = 3; // Block 3 would stand where 2 belongs.
    call.rows = {{R, row_kind::running, {{3, 4}}, 8, 4, 12}};
    sys.raw_step(call);
    EXPECT_EQ(sys.counters().store_jobs, 1u);
    EXPECT_EQ(sys.counters().order_errors, 2u);
  }
}

TEST(Input, a_request_that_still_loads_is_not_scheduled) {
  auto sys = test_system{plain_options()};
  sys.expect_breaches();
  offer_a_load(sys);
  sys.alloc(R, {{4, 5, 6}}, 8);
  EXPECT_EQ(sys.step({{{R, 1, {{4, 5, 6}}}}, {}}), "L1{R#0->4,R#1->5}");
  EXPECT_THAT(
    sys.breaches(),
    ElementsAre("S7 a step schedules a request that is still loading: "
                "step 3, request 82 came before the outcome of job 1"));
  EXPECT_EQ(sys.counters().order_errors, 1u);
}

TEST(Input, blocks_of_a_load_are_not_reused) {
  auto sys = test_system{plain_options()};
  sys.expect_breaches();
  offer_a_load(sys);
  sys.alloc(R, {{4, 5, 6}}, 8);
  sys.add(Q, 4);
  (void)sys.step({{{Q, 4, {{5}}}}, {}});
  EXPECT_THAT(sys.breaches(),
              ElementsAre("S7 a block was reused that a load may still write: "
                          "block 5, load 1"));
}

TEST(Input, a_load_needs_blocks_for_all_its_tokens) {
  auto sys = test_system{plain_options()};
  sys.expect_wrong_calls();
  offer_a_load(sys);
  sys.alloc(R, {{4}}, 8);
  EXPECT_THAT(sys.notices(), ElementsAre("failed R invalid_argument"));
  sys.alloc(R, {{4, 5}}, 8);
  EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
}

// -- numbers ------------------------------------------------------------------

TEST(Input, numbers_out_of_range_are_refused) {
  auto sys = test_system{plain_options()};
  sys.expect_wrong_calls();
  offer_a_load(sys);
  sys.raw_add({X, huge, huge, false, false, false, no_cap, 0, 0, {}});
  sys.raw_allocate({R, huge, {{4, 5, 6}}, {{0, 0, 0}}});
  sys.raw_finish({R, finish_reason::stop, tiny, 0});
  sys.raw_finish({R, finish_reason::stop, 9, huge});
  EXPECT_THAT(sys.notices(), ElementsAre("failed X invalid_argument",
                                         "failed R invalid_argument",
                                         "failed R invalid_argument",
                                         "failed R invalid_argument"));
  EXPECT_THAT(sys.tracked(), ElementsAre(R));
}

// -- keys ---------------------------------------------------------------------

TEST(Input, token_ids_behind_hashes_without_ids_name_no_other_tokens) {
  auto sys = test_system{plain_options()};
  sys.raw_add({R, 8, 8, false, false, false, no_cap, 0, 0, {}});
  sys.raw_extend({R, 0, {prefix_hash{"a", 1}}, {}, {}});
  sys.raw_extend({R, 1, {prefix_hash{"ab", 2}}, {5, 6, 7, 8}, {}});
  auto call = step_call{};
  call.step = 1;
  call.rows = {{R, row_kind::fresh, {{1, 2}}, 0, 8, 8}};
  sys.raw_step(call);
  sys.report(0, 0, job_status::done);
  EXPECT_THAT(sys.events(), ElementsAre("stored ? behind none, 0 of 4 tokens",
                                        "stored ? behind ?, 0 of 4 tokens"));
}

// -- ranks --------------------------------------------------------------------

TEST(Input, a_load_that_no_rank_has_heard_of_ends_with_a_lost_rank) {
  auto sys = test_system{with_ranks(2)};
  offer_a_load(sys);
  sys.alloc(R, {{4, 5, 6}}, 8);
  sys.kill_rank(1);
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
  EXPECT_THAT(sys.notices(),
              ElementsAre("rank_lost 1", "load_failed R 1 from 0 [4 5]"));
  sys.restart_rank(1, 64);
  EXPECT_EQ(sys.step(), "-") << "its new host pool has nothing to load";
  EXPECT_THAT(sys.copies(0), IsEmpty());
  EXPECT_THAT(sys.copies(1), IsEmpty());
}

TEST(Input, A_request_may_end_in_the_step_that_preempts_it) {
  for (auto rules : {rule_set::reference, rule_set::safe}) {
    auto sys = test_system{plain_options(rules)};
    sys.add(R, 4);
    EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
    (void)sys.finish(R, finish_reason::abort);
    EXPECT_EQ(sys.step({{}, {R}}), "flush{0}");
    EXPECT_EQ(sys.counters().order_errors, 0u);
    sys.done(0);
    EXPECT_TRUE(sys.empty());
  }
}

} // namespace
} // namespace kvtide::test
