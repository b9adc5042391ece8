// SPDX-License-Identifier: Apache-2.0

/// @file
/// Public failures of comparable systems that belong to the scheduler, its
/// requests and the pool, each with the outcome that is right (`safe`).

#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

constexpr request_id A = 'A';
constexpr request_id B = 'B';
constexpr request_id P = 'P';
constexpr request_id Q = 'Q';
constexpr request_id R = 'R';
constexpr request_id X = 'X';
constexpr request_id Z = 'Z';

/// Puts the chunks of a prompt into the host pool, and ends the request.
void warm(test_system& sys, request_id id, const block_lists& blocks,
          token_count tokens, const add_with& how = {}) {
  sys.add(id, tokens, how);
  (void)sys.step({{{id, tokens, blocks}}, {}});
  (void)sys.finish(id, finish_reason::abort);
  (void)sys.step();
  for (auto job : sys.jobs())
    sys.done(job);
}

// -- FIN ----------------------------------------------------------------------

TEST(Hazards, FIN_01_a_request_without_blocks_yields_no_store) {
  auto sys = test_system{plain_options()};
  sys.add(A, 8);
  EXPECT_EQ(sys.step({{{A, 8, {{1, 2}}}}, {}}), "S0{A#0<-1,A#1<-2}");
  sys.add(B, 12);
  EXPECT_EQ(sys.lookup(B), 0);
  EXPECT_THAT(sys.finish(B, finish_reason::abort), IsEmpty());
  EXPECT_EQ(sys.step({{{A, 1, {{3}}}}, {}}), "-");
  EXPECT_THAT(sys.tracked(), ElementsAre(A));
  sys.done(0);
  EXPECT_EQ(sys.host(A, 1), "hit");
}

TEST(Hazards, FIN_02_an_abort_publishes_computed_tokens_only) {
  auto sys = test_system{plain_options()};
  sys.add(R, 16);
  EXPECT_EQ(sys.step({{{R, 6, {{1, 2, 3, 4}}}}, {}}), "S0{R#0<-1}");
  (void)sys.finish(R, finish_reason::abort);
  EXPECT_EQ(sys.step(), "-");
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

/// FIN-04 up to the finish of R.
void run_to_the_end(test_system& sys) {
  sys.add(R, 7);
  ASSERT_EQ(sys.step({{{R, 7, {{1, 2}}}}, {}}), "S0{R#0<-1}");
  ASSERT_EQ(sys.step({{{R, 1, {}}}, {}}), "-");
  sys.out(R, 2);
  ASSERT_EQ(sys.known(R), 9);
  (void)sys.finish(R, finish_reason::length);
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

// -- PRE ----------------------------------------------------------------------

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
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

// -- FEN ----------------------------------------------------------------------

TEST(Hazards, FEN_01_a_tail_is_flushed_before_its_block_is_written) {
  auto sys = test_system{plain_options()};
  run_to_the_end(sys);
  sys.add(Q, 4);
  EXPECT_EQ(sys.step({{{Q, 4, {{2}}}}, {}}), "S1{Q#0<-2} S2{R#1<-2} flush{2}");
  EXPECT_FALSE(sys.computes());
  sys.done({2, 1, 0});
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

TEST(Hazards, FEN_01_control_another_block_is_not_flushed) {
  auto sys = test_system{plain_options()};
  run_to_the_end(sys);
  sys.add(Q, 4);
  EXPECT_EQ(sys.step({{{Q, 4, {{9}}}}, {}}), "S1{Q#0<-9} S2{R#1<-2}");
}

TEST(Hazards, FEN_02_an_allocation_without_a_load_arms_the_fence) {
  for (block_id first : {2, 0}) {
    auto sys = test_system{plain_options()};
    sys.add(R, 8);
    EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1,R#1<-2}");
    (void)sys.finish(R, finish_reason::abort);
    EXPECT_EQ(sys.step(), "-");
    sys.add(Q, 4);
    EXPECT_EQ(sys.lookup(Q), 0);
    sys.alloc(Q, {{first, first == 0 ? 0u : 3u}}, 0);
    EXPECT_EQ(sys.step(), first == 0 ? "-" : "flush{0}");
  }
}

TEST(Hazards, FEN_03_a_block_that_a_job_names_twice_is_watched_once) {
  auto opts = plain_options();
  opts.groups.resize(2);
  opts.groups[1].tokens_per_block = 4;
  auto sys = test_system{opts};
  sys.add(R, 4);
  EXPECT_EQ(sys.step({{{R, 4, {{5}, {5}}}}, {}}), "S0{R#0/0<-5,R#0/1<-5}");
  (void)sys.finish(R, finish_reason::abort);
  EXPECT_EQ(sys.step(), "-");
  EXPECT_THAT(sys.watched(), ElementsAre(5u));
  sys.done(0);
  EXPECT_THAT(sys.watched(), IsEmpty());
  EXPECT_EQ(sys.counters().order_errors, 0u);
  sys.add(Q, 4);
  EXPECT_EQ(sys.step({{{Q, 3, {{5}, {6}}}}, {}}), "-");
}

// -- LDL ----------------------------------------------------------------------

TEST(Hazards, LDL_01_blocks_of_a_load_outlive_an_abort) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 12, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  sys.alloc(R, {{4, 5}}, 8);
  EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
  EXPECT_THAT(sys.finish(R, finish_reason::abort), ElementsAre(4u, 5u));
  EXPECT_EQ(sys.step(), "-");
  EXPECT_EQ(sys.counters().pinned_slots, 2u);
  sys.done(1);
  EXPECT_THAT(sys.notices(), ElementsAre("released R [4 5]"));
  EXPECT_TRUE(sys.empty());
}

TEST(Hazards, LDL_06_at_least_one_prompt_token_is_computed) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 8, {P, 8});
  EXPECT_EQ(sys.lookup(R), 7); // The answer clamps, not the caller (R16).
  sys.alloc(R, {{4, 5}}, 7);
  EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
  sys.done(1);
  EXPECT_EQ(sys.computed(R), 7);
  EXPECT_EQ(sys.step({{{R, 1, {{4, 5}}}}, {}}), "-") << "no duplicate store";
  sys.out(R, 1);
  EXPECT_EQ(sys.step({{{R, 1, {{6}}}}, {}}), "-");
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

TEST(Hazards, LDL_08_a_shorter_host_hit_is_no_hit) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 16, {P, 8});
  EXPECT_EQ(sys.lookup(R, 12), 0);
  EXPECT_EQ(sys.promise(R), 0u);
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
  EXPECT_EQ(sys.step({{{R, 4, {{4, 5, 6, 7}}}}, {}}), "S1{R#2<-6,R#3<-7}");
}

// -- TOC, LIV, LEK ------------------------------------------------------------

TEST(Hazards, TOC_01_what_a_lookup_promised_is_what_the_load_gets) {
  auto sys = test_system{plain_options(), 2};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  sys.add(Q, 4);
  EXPECT_EQ(sys.step({{{Q, 4, {{3}}}}, {}}), "-");
  sys.alloc(R, {{4, 5, 6}}, 8);
  EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
  sys.done(1);
  // The refused store waited.
  EXPECT_EQ(sys.step(), "S2{Q#0<-3}");
}

TEST(Hazards, LIV_01_deferral_is_bounded_in_total) {
  auto opts = plain_options();
  opts.max_deferrals = 8;
  auto sys = test_system{opts};
  sys.add(X, 8);
  EXPECT_EQ(sys.step({{{X, 8, {{1, 2}}}}, {}}), "S0{X#0<-1,X#1<-2}");
  sys.add(R, 9, {X, 8});
  // Fails and retries of the write do not extend the bound.
  for (job_id job = 0; job < 2; ++job) {
    for (auto i = 0; i < 4; ++i) {
      EXPECT_EQ(sys.lookup(R), defer);
    }
    sys.fail(job);
    EXPECT_EQ(sys.step({{{X, 0, {}}}, {}}),
              "S" + std::to_string(job + 1) + "{X#0<-1,X#1<-2}");
  }
  EXPECT_EQ(sys.lookup(R), 0);
  EXPECT_EQ(sys.step({{{R, 9, {{4, 5, 6}}}}, {}}), "-");
}

TEST(Hazards, LIV_06_a_pool_without_room_answers_at_once) {
  auto sys = test_system{plain_options(), 1};
  warm(sys, P, {{1}}, 4);
  sys.add(R, 5, {P, 4});
  EXPECT_EQ(sys.lookup(R), 4);
  sys.add(Q, 4);
  EXPECT_EQ(sys.step({{{Q, 4, {{3}}}}, {}}), "-");
  EXPECT_EQ(sys.counters().refused_stores, 1u);
}

TEST(Hazards, LEK_01_a_promise_ends_with_its_request) {
  auto sys = test_system{plain_options(), 2};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  (void)sys.finish(R, finish_reason::abort);
  EXPECT_EQ(sys.step(), "-");
  EXPECT_FALSE(sys.pending_work());
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
  EXPECT_EQ(sys.counters().held_slots, 0u);
  sys.add(Q, 8);
  EXPECT_EQ(sys.step({{{Q, 8, {{3, 4}}}}, {}}), "S1{Q#0<-3,Q#1<-4}");
}

// -- GEO, HYB -----------------------------------------------------------------

TEST(Hazards, GEO_01_a_load_enters_its_first_chunk_where_the_device_ends) {
  auto opts = plain_options();
  opts.blocks_per_chunk = 4;
  auto sys = test_system{opts};
  warm(sys, P, {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}, 48);
  sys.add(R, 49, {P, 48});
  EXPECT_EQ(sys.lookup(R, 20), 28);
  sys.alloc(R, {{1, 2, 3, 4, 5, 105, 106, 107, 108, 109, 110, 111, 112}}, 28);
  EXPECT_EQ(sys.step(), "L1{R#1->[0 105 106 107],R#2->[108 109 110 111]}");
  sys.done(1);
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

TEST(Hazards, GEO_01_variant_the_skip_is_the_remainder) {
  auto opts = plain_options();
  opts.blocks_per_chunk = 3;
  auto sys = test_system{opts};
  warm(sys, P, {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, 36);
  sys.add(R, 37, {P, 36});
  EXPECT_EQ(sys.lookup(R, 16), 20);
  sys.alloc(R, {{1, 2, 3, 4, 105, 106, 107, 108, 109, 110}}, 20);
  EXPECT_EQ(sys.step(), "L1{R#1->[0 105 106],R#2->[107 108 109]}");
  sys.done(1);
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

TEST(Hazards, HYB_01_no_group_is_a_draft_group_unless_marked) {
  auto opts = plain_options();
  opts.groups.resize(2);
  opts.groups[1].tokens_per_block = 4;
  opts.groups[1].sliding_window_tokens = 4;
  auto sys = test_system{opts};
  warm(sys, P, {{1, 2, 3, 4}, {0, 0, 0, 14}}, 16);
  EXPECT_EQ(sys.host(P, 2, 1), "miss");
  sys.add(R, 17, {P, 16});
  EXPECT_EQ(sys.lookup(R), 16);
}

TEST(Hazards, HYB_01_variant_a_query_is_widened_before_a_chunk_is_dropped) {
  auto opts = plain_options();
  opts.groups.resize(2);
  opts.groups[1].tokens_per_block = 4;
  opts.groups[1].draft = true;
  auto sys = test_system{opts, 11};
  warm(sys, P, {{1, 2, 3, 4, 5}, {11, 12, 13, 14, 15}}, 20);
  warm(sys, X, {{6}, {16}}, 4);
  EXPECT_EQ(sys.host(P, 4, 0), "miss");
  EXPECT_EQ(sys.host(P, 4, 1), "hit");
  sys.add(R, 21, {P, 20});
  EXPECT_EQ(sys.lookup(R), 16);
}

// -- POL ----------------------------------------------------------------------

TEST(Hazards, POL_01_a_store_removes_no_chunk_of_its_own_request) {
  auto sys = test_system{plain_options(), 4};
  warm(sys, P, {{1, 2, 3}}, 12);
  warm(sys, X, {{8}}, 4);
  // Full: P#0 to P#2 and X#0, and P is older.
  sys.add(R, 20, {P, 12});
  EXPECT_EQ(sys.lookup(R, 12), 0);
  EXPECT_EQ(sys.step({{{R, 8, {{1, 2, 3, 4, 5}}}}, {}}), "S2{R#3<-4}");
  EXPECT_EQ(sys.host(X, 0), "miss");
  EXPECT_EQ(sys.host(P, 0), "hit");
  EXPECT_EQ(sys.host(P, 1), "hit");
  EXPECT_EQ(sys.host(P, 2), "hit");
}

TEST(Hazards, POL_03_the_tail_of_a_request_is_older_than_its_head) {
  auto sys = test_system{plain_options(), 3};
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

TEST(Hazards, POL_06_a_chunk_that_is_being_stored_is_not_stored_again) {
  auto sys = test_system{plain_options()};
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

// -- AGG, FAI -----------------------------------------------------------------

TEST(Hazards, AGG_01_a_job_is_complete_when_all_ranks_reported) {
  auto opts = plain_options();
  opts.ranks = 4;
  auto sys = test_system{opts};
  sys.add(R, 4);
  EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
  (void)sys.finish(R, finish_reason::abort);
  (void)sys.step();
  for (rank_id rank = 0; rank < 3; ++rank)
    sys.done(0, {rank});
  sys.add(Q, 5, {R, 4});
  EXPECT_EQ(sys.lookup(Q), defer);
  EXPECT_THAT(sys.watched(), ElementsAre(1u));
  sys.done(0, {rank_id{3}});
  EXPECT_EQ(sys.lookup(Q), 4);
  EXPECT_THAT(sys.watched(), IsEmpty());
}

TEST(Hazards, AGG_04_the_pool_has_what_every_rank_has) {
  auto opts = plain_options();
  opts.ranks = 2;
  auto config = system_config{};
  config.opts = opts;
  config.slots = {10, 8};
  auto sys = test_system{config};
  sys.expect_wrong_calls();
  EXPECT_EQ(sys.counters().host_slots, 8u);
  sys.add(R, 40);
  EXPECT_EQ(sys.step({{{R, 40, {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}}}, {}}),
            "S0{R#0<-1,R#1<-2,R#2<-3,R#3<-4,R#4<-5,R#5<-6,R#6<-7,R#7<-8}");
  sys.done(0);
  // A worker that comes back with fewer is not taken.
  sys.kill_rank(1);
  (void)sys.notices();
  sys.restart_rank(1, 7);
  EXPECT_THAT(sys.notices(), IsEmpty());
  EXPECT_EQ(sys.counters().order_errors, 1u);
}

TEST(Hazards, FAI_01_a_failed_copy_costs_one_request_a_recompute) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  sys.alloc(R, {{4, 5, 6}}, 8);
  EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
  sys.fail(1);
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 0 [4 5]"));
  EXPECT_EQ(sys.computed(R), 0);
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
  EXPECT_EQ(sys.step({{{R, 9, {{4, 5, 6}}}}, {}}), "-");
  sys.add(Q, 4);
  EXPECT_EQ(sys.step({{{Q, 4, {{7}}}}, {}}), "S2{Q#0<-7}");
  (void)sys.finish(Q, finish_reason::abort);
  (void)sys.step();
  sys.fail(2);
  sys.add(Z, 5, {Q, 4});
  EXPECT_EQ(sys.lookup(Z), 0);
  EXPECT_EQ(sys.counters().free_slots, 62u);
  EXPECT_THAT(sys.watched(), IsEmpty());
}

TEST(Hazards, FAI_03_every_job_has_one_terminal_report) {
  auto sys = test_system{plain_options(), 200};
  for (request_id id = 1'000; id < 1'100; ++id) {
    sys.add(id, 4);
    (void)sys.step({{{id, 4, {{static_cast<block_id>(id)}}}}, {}});
    (void)sys.finish(id, finish_reason::abort);
  }
  (void)sys.step();
  auto ids = sys.jobs();
  ASSERT_EQ(ids.size(), 100u);
  for (auto id : ids)
    sys.done(id, {std::nullopt, id % 10 == 3, 0});
  EXPECT_TRUE(sys.empty());
  EXPECT_EQ(sys.counters().failed_jobs, 10u);
  EXPECT_EQ(sys.counters().stored_chunks, 90u);
  EXPECT_EQ(sys.counters().free_slots, 110u);
}

// -- RST, EVT -----------------------------------------------------------------

TEST(Hazards, RST_01_after_a_reset_a_request_is_not_deferred_for_old_jobs) {
  auto sys = test_system{plain_options()};
  sys.add(R, 9);
  EXPECT_EQ(sys.step({{{R, 9, {{1, 2, 3}}}}, {}}), "S0{R#0<-1,R#1<-2}");
  EXPECT_THAT(sys.reset(), ElementsAre(0u));
  EXPECT_EQ(sys.step({{}, {R}}), "flush{0}");
  EXPECT_EQ(sys.lookup(R), 0);
  sys.done(0);
  EXPECT_EQ(sys.host(R, 0), "miss");
  EXPECT_EQ(sys.step({{{R, 9, {{4, 5, 6}}}}, {}}), "S1{R#0<-4,R#1<-5}");
}

TEST(Hazards, RST_03_a_reset_leaves_nothing_to_be_served) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1, 2}}, 8);
  warm(sys, Q, {{1, 2}}, 8, {P, 8});
  EXPECT_THAT(sys.reset(), IsEmpty());
  const auto hits = sys.counters().hit_tokens;
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 0);
  EXPECT_EQ(sys.counters().hit_tokens, hits);
}

TEST(Hazards, EVT_01_events_say_what_is_where_after_it_is_there) {
  auto sys = test_system{plain_options(), 2};
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

// -- DRN, API, PRF, CNT -------------------------------------------------------

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

TEST(Hazards, API_02_a_request_may_refuse_to_read) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1, 2}}, 8);
  auto how = add_with{P, 8};
  how.no_read = true;
  sys.add(R, 13, how);
  EXPECT_EQ(sys.lookup(R), 0);
  EXPECT_EQ(sys.promise(R), 0u);
  EXPECT_EQ(sys.counters().held_slots, 0u);
  // Storing is allowed, without a second copy of what is there.
  EXPECT_EQ(sys.step({{{R, 13, {{4, 5, 6, 7}}}}, {}}), "S1{R#2<-6}");
}

TEST(Hazards, API_02_requests_may_refuse_to_store_or_limit_it) {
  auto sys = test_system{plain_options()};
  auto how = add_with{};
  how.no_store = true;
  sys.add(A, 8, how);
  how = {};
  how.cap = 7;
  sys.add(B, 8, how);
  how = {};
  how.prompt_only = true;
  sys.add(R, 7, how);
  EXPECT_EQ(
    sys.step({{{A, 8, {{1, 2}}}, {B, 8, {{3, 4}}}, {R, 7, {{5, 6}}}}, {}}),
    "S0{B#0<-3} S1{R#0<-5}");
  sys.out(R, 4);
  EXPECT_EQ(sys.step({{{R, 4, {{7}}}}, {}}), "-");
  (void)sys.finish(R, finish_reason::stop);
  (void)sys.finish(A, finish_reason::stop);
  EXPECT_EQ(sys.step(), "-");
}

TEST(Hazards, PRF_01_a_shared_prefix_is_loaded_once) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}, 40);
  const auto blocks
    = block_lists{{101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111}};
  sys.add(R, 41, {P, 40});
  EXPECT_EQ(sys.lookup(R), 40);
  sys.alloc(R, blocks, 40);
  EXPECT_EQ(sys.step().substr(0, 3), "L1{");
  for (request_id id = 1'000; id < 1'049; ++id) {
    sys.add(id, 41, {P, 40});
    EXPECT_EQ(sys.lookup(id), defer);
  }
  // One whose prefix lies on the device already is not deferred.
  sys.add(Q, 41, {P, 40});
  EXPECT_EQ(sys.lookup(Q, 40), 0);
  sys.done(1);
  // The device's own cache has the prefix now.
  for (request_id id = 1'000; id < 1'049; ++id)
    EXPECT_EQ(sys.lookup(id, 40), 0);
  EXPECT_EQ(sys.counters().load_jobs, 1u);
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
