// SPDX-License-Identifier: Apache-2.0

/// @file
/// The sequencing rules S1 to S13 as far as the scheduler keeps them, with real
/// workers. What a worker keeps alone: gpu_worker_test.cpp.

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

namespace kvtide::test {
namespace {

// -- S1 -----------------------------------------------------------------------

/// Calls of all kinds, each of which needs the effect of earlier ones.
void talk(test_system& sys) {
  sys.expect_wrong_calls();
  sys.add(A, 12);
  sys.add(B, 9);
  (void)sys.lookup(A);
  (void)sys.step({{{A, 12, {{1, 2, 3}}}, {B, 9, {{4, 5, 6}}}}, {}});
  sys.out(A, 4);
  sys.add(P, 13, {A, 12});
  (void)sys.lookup(P); // What A stores is pending.
  (void)sys.finish(B, finish_reason::stop);
  (void)sys.step({{{A, 4, {{7}}}}, {}});
  (void)sys.step({{{P, 13, {{5, 6, 8, 9}}}}, {A}});
  (void)sys.lookup(A);
  sys.truncate(P, 6);
  (void)sys.reset();
  (void)sys.lookup(A);
  (void)sys.finish(P, finish_reason::error);
  (void)sys.finish(P, finish_reason::stop);
  (void)sys.step({{{A, 16, {{11, 12, 13, 14, 15}}}}, {}});
  (void)sys.finish(A, finish_reason::length);
  (void)sys.step();
  sys.add(A, 4);
}

TEST(Order, S1_calls_take_effect_in_the_order_in_which_they_were_made) {
  for (auto rules : {rule_set::reference, rule_set::safe}) {
    auto slow = test_system{plain_options(rules), 6};
    talk(slow);
    // Under the recorded rules A's last jobs still run, so it is no new one.
    ASSERT_EQ(slow.heard().size(), rules == rule_set::safe ? 14u : 16u);
    for (std::uint32_t seed = 1; seed <= 200; ++seed) {
      auto fast = test_system{plain_options(rules), 6};
      fast.queue_calls();
      talk(fast);
      fast.run_shuffled(seed);
      ASSERT_EQ(fast.heard(), slow.heard()) << "seed " << seed;
    }
  }
}

TEST(Order, S1_outcomes_wait_in_the_same_queue_as_calls) {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    auto sys = test_system{plain_options()};
    sys.add(R, 4);
    EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
    sys.queue_calls();
    sys.add(Q, 5, {R, 4});
    (void)sys.lookup(Q);
    sys.report(0, 0, job_status::done);
    (void)sys.lookup(Q);
    sys.run_shuffled(seed);
    const auto& log = sys.heard();
    ASSERT_EQ(log.size(), 3u);
    EXPECT_THAT(log[1], ::testing::HasSubstr("Q defer"));
    EXPECT_THAT(log[2], ::testing::HasSubstr("Q 4"));
  }
}

// -- S2 to S6 -----------------------------------------------------------------

TEST(Order, S2_a_finished_request_lives_until_its_tail_and_its_jobs_are_over) {
  auto sys = test_system{plain_options()};
  run_to_the_end(sys);
  sys.done(0);
  EXPECT_THAT(sys.tracked(), ElementsAre(R)) << "its tail is not planned yet";
  EXPECT_EQ(sys.step(), "S1{R#1<-2}");
  EXPECT_THAT(sys.tracked(), ElementsAre(R)) << "its last job is in flight";
  sys.done(1);
  EXPECT_THAT(sys.tracked(), IsEmpty());
  // The id is free again.
  sys.add(R, 4);
  EXPECT_THAT(sys.notices(), IsEmpty());
}

TEST(Order, S2_finishes_that_the_step_does_not_name_are_planned_too) {
  auto sys = test_system{plain_options()};
  sys.add(R, 7);
  (void)sys.step({{{R, 7, {{1, 2}}}}, {}});
  (void)sys.step({{{R, 1, {}}}, {}});
  sys.out(R, 2);
  sys.done(0);
  sys.raw_finish({R, finish_reason::stop, 9, 8});
  EXPECT_EQ(sys.step(), "S1{R#1<-2}");
}

TEST(Order, S3_stores_are_submitted_at_the_start_of_the_next_step) {
  auto sys = test_system{plain_options()};
  sys.add(R, 8);
  (void)sys.device_log();
  EXPECT_EQ(sys.step({{{R, 4, {{1, 2}}}}, {}}), "S0{R#0<-1}");
  EXPECT_THAT(sys.device_log(), IsEmpty());
  EXPECT_EQ(sys.step({{{R, 4, {}}}, {}}), "S1{R#1<-2}");
  EXPECT_THAT(sys.device_log(), ElementsAre("submit 0"));
}

TEST(Order, S4_a_worker_hears_of_a_step_before_any_request_is_asked) {
  auto sys = test_system{plain_options()};
  sys.add(R, 8);
  EXPECT_TRUE(sys.plan_comes_before_the_answer({{{R, 8, {{1, 2}}}}, {}}));
}

TEST(Order, S4_the_plan_is_late_if_a_finished_request_may_be_flushed_in_it) {
  auto sys = test_system{plain_options()};
  run_to_the_end(sys);
  sys.add(Q, 4);
  (void)sys.device_log();
  EXPECT_FALSE(sys.plan_comes_before_the_answer({{{Q, 4, {{2}}}}, {}}));
  EXPECT_THAT(sys.device_log(), ElementsAre("submit 2", "fence 2"));
  EXPECT_EQ(sys.counters().order_errors, 0u);
}

TEST(Order, S4_a_flush_may_name_a_job_that_is_still_deferred) {
  auto sys = test_system{plain_options()};
  sys.add(R, 8);
  EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1,R#1<-2}");
  (void)sys.device_log();
  sys.add(Q, 4);
  EXPECT_EQ(sys.step({{{Q, 4, {{2}}}}, {R}}), "S1{Q#0<-2} flush{0}");
  EXPECT_THAT(sys.device_log(), ElementsAre("submit 0", "fence 0"));
  EXPECT_FALSE(sys.computes());
  sys.done(0);
  EXPECT_TRUE(sys.computes());
  sys.done(1);
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

TEST(Order, S4_a_load_that_its_own_step_flushes_is_not_waited_for) {
  for (auto rules : {rule_set::reference, rule_set::safe}) {
    auto sys = test_system{plain_options(rules)};
    warm(sys, P, {{1, 2}}, 8);
    sys.add(R, 9, {P, 8});
    EXPECT_EQ(sys.lookup(R), 8);
    sys.alloc(R, {{4, 5, 6}}, 8);
    EXPECT_THAT(sys.reset(), ElementsAre(1u));
    EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5} flush{1}");
    if (rules == rule_set::safe) {
      EXPECT_TRUE(sys.computes());
    }
    sys.done(1);
    EXPECT_TRUE(sys.computes());
    EXPECT_THAT(sys.notices(), ElementsAre("load_done R 1"));
  }
}

TEST(Order, S5_no_rank_waits_for_another_one) {
  auto sys = test_system{with_ranks(2)};
  sys.add(R, 8);
  (void)sys.step({{{R, 8, {{1, 2}}}}, {}});
  sys.add(Q, 4);
  EXPECT_EQ(sys.step({{{Q, 4, {{2}}}}, {R}}), "S1{Q#0<-2} flush{0}");
  sys.done(0, {rank_id{1}});
  EXPECT_TRUE(sys.computes(1));
  EXPECT_FALSE(sys.computes(0));
  EXPECT_EQ(sys.host(R, 0), "pending") << "visibility needs all ranks";
  sys.done(0, {rank_id{0}, true}); // A fence ends with a failure as well.
  EXPECT_TRUE(sys.computes());
}

TEST(Order, S6_a_step_begins_when_compute_of_the_one_before_is_enqueued) {
  auto sys = test_system{plain_options()};
  sys.hold_compute();
  sys.add(R, 8);
  EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1,R#1<-2}");
  // Asynchronous scheduling: planned, but not begun.
  EXPECT_EQ(sys.step({{{R, 1, {{3}}}}, {}}), "-");
  EXPECT_FALSE(sys.computes());
  EXPECT_THAT(sys.device_log(), Not(Contains("submit 0")));
  sys.end_compute();
  EXPECT_TRUE(sys.computes());
  EXPECT_THAT(sys.device_log(), Contains("submit 0"));
  sys.done(0);
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

// -- S7 to S9 -----------------------------------------------------------------

TEST(Order, S7_blocks_of_a_load_stay_reserved_until_they_are_released) {
  for (auto rules : {rule_set::reference, rule_set::safe}) {
    auto sys = test_system{plain_options(rules)};
    warm(sys, P, {{1, 2}}, 8);
    sys.add(R, 9, {P, 8});
    EXPECT_EQ(sys.lookup(R), 8);
    sys.alloc(R, {{4, 5, 6}}, 8);
    EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
    EXPECT_THAT(sys.finish(R, finish_reason::abort), ElementsAre(4u, 5u));
    EXPECT_EQ(sys.step(), "-");
    EXPECT_THAT(sys.notices(), IsEmpty());
    sys.done(1);
    EXPECT_THAT(sys.notices(), ElementsAre("released R [4 5]"));
    EXPECT_TRUE(sys.empty());
  }
}

TEST(Order, S7_a_late_load_keeps_its_blocks_through_a_finish) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  sys.alloc(R, {{4, 5, 6}}, 8);
  (void)sys.step();
  sys.pass_deadline();
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 0 [4 5] new"));
  EXPECT_THAT(sys.finish(R, finish_reason::abort), ElementsAre(4u, 5u));
  EXPECT_EQ(sys.step(), "-");
  sys.done(1);
  EXPECT_THAT(sys.notices(), ElementsAre("released R [4 5]")) << "once";
}

TEST(Order, S8_slots_of_a_late_store_are_not_handed_out) {
  auto sys = test_system{plain_options(), 2};
  sys.add(R, 8);
  EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1,R#1<-2}");
  (void)sys.step();
  (void)sys.finish(R, finish_reason::abort);
  (void)sys.step();
  sys.pass_deadline();
  EXPECT_EQ(sys.host(R, 0), "miss");
  EXPECT_THAT(sys.tracked(), IsEmpty());
  EXPECT_EQ(sys.counters().quarantined_slots, 2u);
  EXPECT_EQ(sys.counters().free_slots, 0u);
  sys.add(Q, 4);
  EXPECT_EQ(sys.step({{{Q, 4, {{3}}}}, {}}), "-");
  sys.done(0);
  EXPECT_EQ(sys.counters().quarantined_slots, 0u);
  EXPECT_EQ(sys.step({{{Q, 0, {}}}, {}}), "S1{Q#0<-3}");
  EXPECT_EQ(sys.counters().order_errors, 0u);
}

TEST(Order, S9_a_job_has_one_outcome_whatever_its_ranks_do) {
  auto sys = test_system{with_ranks(3)};
  sys.expect_breaches();
  sys.add(R, 4);
  EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
  (void)sys.step();
  (void)sys.finish(R, finish_reason::abort);
  (void)sys.step();
  sys.done(0, {rank_id{0}});
  sys.done(0, {rank_id{1}, true});
  EXPECT_EQ(sys.host(R, 0), "pending");
  sys.kill_rank(2);
  EXPECT_THAT(sys.notices(), ElementsAre("rank_lost 2"));
  EXPECT_EQ(sys.host(R, 0), "miss") << "visible only if all ranks stored it";
  EXPECT_EQ(sys.counters().failed_jobs, 1u);
  EXPECT_EQ(sys.counters().free_slots, 64u);
  EXPECT_THAT(sys.jobs(), IsEmpty());
  sys.report(0, 1, job_status::done);
  EXPECT_EQ(sys.counters().failed_jobs, 1u);
  EXPECT_TRUE(sys.empty());
}

TEST(Order, S9_a_lost_rank_degrades_the_cache_until_it_is_back) {
  auto sys = test_system{with_ranks(2)};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  sys.alloc(R, {{4, 5, 6}}, 8);
  EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
  sys.kill_rank(1);
  EXPECT_EQ(sys.counters().pinned_slots, 2u) << "rank 0 still reads";
  sys.done(1, {rank_id{0}});
  EXPECT_THAT(sys.notices(),
              ElementsAre("rank_lost 1", "load_failed R 1 from 0 [4 5]"));
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
  sys.add(Q, 9, {P, 8});
  EXPECT_EQ(sys.lookup(Q), 0);
  EXPECT_EQ(sys.step({{{Q, 9, {{7, 8, 9}}}}, {}}), "-") << "stores pause";
  sys.restart_rank(1, 64);
  EXPECT_THAT(sys.notices(), ElementsAre("rank_back 1"));
  EXPECT_EQ(sys.host(P, 0), "miss") << "its host memory is gone";
  sys.out(Q, 1);
  EXPECT_EQ(sys.step({{{Q, 1, {}}}, {}}), "S2{Q#0<-7,Q#1<-8}");
}

TEST(Order, S9_a_load_that_lacks_a_rank_fails_at_once_and_pins_nothing) {
  auto sys = test_system{with_ranks(2)};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  sys.kill_rank(1);
  sys.alloc(R, {{4, 5, 6}}, 8);
  EXPECT_THAT(sys.notices(),
              ElementsAre("rank_lost 1", "load_failed R 1 from 0 [4 5]"));
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
  EXPECT_EQ(sys.counters().held_slots, 0u);
}

// -- S10 to S13 ---------------------------------------------------------------

TEST(Order, S10_plans_to_all_ranks_are_byte_identical) {
  auto sys = test_system{with_ranks(3)};
  run_to_the_end(sys);
  sys.done(0);
  sys.add(Q, 4);
  EXPECT_EQ(sys.step({{{Q, 4, {{2}}}}, {}}), "S1{Q#0<-2} S2{R#1<-2} flush{2}");
  sys.done({2, 1});
  sys.add(P, 9, {R, 8});
  EXPECT_EQ(sys.lookup(P), 8);
  sys.alloc(P, {{4, 5, 6}}, 8);
  EXPECT_EQ(sys.step(), "L3{P#0->4,P#1->5}");
  EXPECT_EQ(sys.plans(0).size(), 6u);
  EXPECT_EQ(sys.plans(0), sys.plans(1));
  EXPECT_EQ(sys.plans(0), sys.plans(2));
}

TEST(Order, S11_an_outcome_from_before_a_reset_changes_nothing) {
  auto sys = test_system{plain_options()};
  sys.add(P, 8);
  EXPECT_EQ(sys.step({{{P, 8, {{1, 2}}}}, {}}), "S0{P#0<-1,P#1<-2}");
  sys.done(0);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  sys.alloc(R, {{4, 5, 6}}, 8);
  EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
  sys.add(Q, 4);
  EXPECT_EQ(sys.step({{{Q, 4, {{7}}}}, {}}), "S2{Q#0<-7}");
  EXPECT_THAT(sys.reset(), ElementsAre(1u, 2u));
  EXPECT_EQ(sys.step({{{Q, 0, {}}}, {}}), "S3{Q#0<-7} flush{1,2}");
  (void)sys.events();
  sys.done(2);
  EXPECT_EQ(sys.host(Q, 0), "pending") << "S3 is another job";
  EXPECT_THAT(sys.events(), IsEmpty());
  EXPECT_THAT(sys.jobs(), ElementsAre(3u));
  sys.done(1);
  // The bytes are there, so the engine hears of it.
  EXPECT_THAT(sys.notices(), ElementsAre("load_done R 1"));
  sys.done(3);
  EXPECT_EQ(sys.host(Q, 0), "hit");
  EXPECT_EQ(sys.counters().free_slots, 63u);
  EXPECT_EQ(sys.counters().quarantined_slots, 0u);
}

TEST(Order, S12_a_violation_is_counted_and_answered) {
  auto sys = test_system{plain_options()};
  sys.expect_breaches();
  sys.add(R, 8);
  (void)sys.step({{{R, 4, {{1, 2}}}}, {}});
  auto call = step_call{};
  call.step = 3; // 2 is next.
  sys.raw_step(call);
  call.step = 1;
  sys.raw_step(call);
  EXPECT_THAT(sys.notices(),
              ElementsAre("failed 0 out_of_order", "failed 0 out_of_order"));
  sys.decline(99);
  EXPECT_THAT(sys.notices(), ElementsAre("failed 0 unknown_promise"));
  EXPECT_EQ(sys.counters().order_errors, 3u);
  EXPECT_EQ(sys.step({{{R, 4, {}}}, {}}), "S1{R#1<-2}") << "all goes on";
}

TEST(Order, S13_deferred_stores_do_not_wait_for_a_step_that_may_not_come) {
  auto sys = test_system{plain_options()};
  sys.add(R, 8);
  (void)sys.step({{{R, 8, {{1, 2}}}}, {}});
  (void)sys.device_log();
  sys.pass(999us);
  EXPECT_THAT(sys.device_log(), IsEmpty());
  sys.pass(1us);
  EXPECT_THAT(sys.device_log(), ElementsAre("submit 0"));
}

TEST(Order, S13_a_finish_is_planned_without_a_further_step) {
  auto opts = plain_options();
  opts.idle_delay = 5ms;
  auto sys = test_system{opts};
  run_to_the_end(sys);
  sys.pass(4ms);
  EXPECT_THAT(sys.jobs(), ElementsAre(0u));
  sys.pass(1ms);
  EXPECT_THAT(sys.jobs(), ElementsAre(0u, 1u));
  sys.done({0, 1});
  EXPECT_EQ(sys.host(R, 1), "hit");
  EXPECT_TRUE(sys.empty());
  // A step that comes later does not plan it again.
  EXPECT_EQ(sys.step(), "-");
}

// A block that is taken while its store was planned without a step.
TEST(Order, S13_what_was_planned_without_a_step_is_flushed_by_the_next_one) {
  auto opts = plain_options();
  opts.idle_delay = 5ms;
  auto sys = test_system{opts};
  sys.add(R, 7);
  (void)sys.step({{{R, 7, {{1, 2}}}}, {}});
  (void)sys.step({{{R, 1, {}}}, {}});
  sys.out(R, 2);
  sys.done(0);
  sys.add(Q, 4);
  EXPECT_EQ(sys.lookup(Q), 0);
  sys.alloc(Q, {{2}}, 0);
  (void)sys.finish(R, finish_reason::stop);
  sys.pass(5ms);
  EXPECT_THAT(sys.jobs(), ElementsAre(1u));
  EXPECT_EQ(sys.step({{{Q, 4, {{2}}}}, {}}), "S2{Q#0<-2} flush{1}");
  sys.done({1, 2});
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

TEST(Order, S13_a_finish_is_planned_after_a_step_that_had_stores_of_its_own) {
  auto opts = plain_options();
  opts.idle_delay = 5ms;
  auto sys = test_system{opts};
  sys.add(R, 7);
  sys.add(Q, 4);
  (void)sys.step({{{R, 7, {{1, 2}}}}, {}});
  EXPECT_EQ(sys.step({{{R, 1, {}}, {Q, 4, {{3}}}}, {}}), "S1{Q#0<-3}");
  sys.out(R, 2);
  sys.done({0, 1});
  (void)sys.finish(R, finish_reason::stop);
  sys.pass(5ms);
  EXPECT_THAT(sys.jobs(), ElementsAre(2u));
  sys.done(2);
  EXPECT_EQ(sys.host(R, 1), "hit");
}

TEST(Order, S13_a_tail_that_overtakes_a_load_does_not_take_its_place) {
  auto opts = plain_options();
  opts.idle_delay = 5ms;
  auto sys = test_system{opts};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 7);
  EXPECT_EQ(sys.step({{{R, 7, {{3, 6}}}}, {}}), "S1{R#0<-3}");
  EXPECT_EQ(sys.step({{{R, 1, {}}}, {}}), "-");
  sys.out(R, 2);
  (void)sys.finish(R, finish_reason::length);
  sys.add(Q, 9, {P, 8});
  EXPECT_EQ(sys.lookup(Q), 8);
  sys.alloc(Q, {{4, 5, 7}}, 8);
  sys.pass(5ms); // The engine is slow to step.
  EXPECT_THAT(sys.jobs(), ElementsAre(1u, 2u, 3u));
  EXPECT_EQ(sys.step(), "L2{Q#0->4,Q#1->5}");
  sys.done({1, 2, 3});
  EXPECT_THAT(sys.notices(), ElementsAre("load_done Q 2"));
  EXPECT_EQ(sys.counters().order_errors, 0u);
}

TEST(Order, shutdown_waits_for_what_is_in_flight) {
  auto sys = test_system{plain_options()};
  sys.expect_wrong_calls();
  run_to_the_end(sys);
  sys.shutdown(10s);
  EXPECT_THAT(sys.heard(), Not(Contains(::testing::HasSubstr("done ["))));
  EXPECT_THAT(sys.jobs(), ElementsAre(0u, 1u)) << "the tail is stored now";
  sys.done({0, 1});
  EXPECT_THAT(sys.heard(), Contains(::testing::HasSubstr("done []")));
  sys.add(Q, 4);
  EXPECT_THAT(sys.notices(), Contains("failed Q shutting_down"));
}

TEST(Order, shutdown_says_what_is_in_flight_at_its_deadline) {
  auto sys = test_system{plain_options()};
  sys.add(R, 4);
  (void)sys.step({{{R, 4, {{1}}}}, {}});
  sys.shutdown(50ms);
  sys.pass(49ms);
  EXPECT_THAT(sys.heard(), Not(Contains(::testing::HasSubstr("done ["))));
  sys.pass(1ms);
  EXPECT_THAT(sys.heard(), Contains(::testing::HasSubstr("done [0]")));
}

// The tail of R is neither among the jobs nor waits for a step while the step
// that stores it is being planned.
TEST(Order, shutdown_waits_for_the_tail_that_a_step_is_about_to_store) {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    auto sys = test_system{plain_options()};
    sys.add(R, 7);
    sys.add(Q, 4);
    ASSERT_EQ(sys.step({{{R, 7, {{1, 2}}}, {Q, 3, {{3}}}}, {}}), "S0{R#0<-1}");
    (void)sys.step({{{R, 1, {}}}, {}});
    sys.out(R, 2);
    sys.queue_calls();
    sys.shutdown(10s);
    (void)sys.finish(Q, finish_reason::stop);
    sys.report(0, 0, job_status::done);
    (void)sys.step();
    (void)sys.finish(R, finish_reason::stop);
    (void)sys.step();
    sys.run_shuffled(seed);
    ASSERT_THAT(sys.heard(), Contains(::testing::HasSubstr("S1{R#1<-2}")))
      << "seed " << seed;
    ASSERT_THAT(sys.heard(), Not(Contains(::testing::HasSubstr("done ["))))
      << "seed " << seed;
    sys.report(1, 0, job_status::done);
    sys.run_shuffled(seed);
    ASSERT_THAT(sys.heard(), Contains(::testing::HasSubstr("done []")))
      << "seed " << seed;
  }
}

// A finish that comes after the shutdown does not wait for its deadline.
TEST(Order, S13_a_finish_is_planned_in_time_whatever_timer_is_armed) {
  auto opts = plain_options();
  opts.idle_delay = 5ms;
  auto sys = test_system{opts};
  sys.add(R, 7);
  (void)sys.step({{{R, 7, {{1, 2}}}}, {}});
  (void)sys.step({{{R, 1, {}}}, {}});
  sys.out(R, 2);
  sys.shutdown(10s);
  (void)sys.finish(R, finish_reason::stop);
  sys.pass(5ms);
  EXPECT_THAT(sys.jobs(), ElementsAre(0u, 1u));
  sys.done({0, 1});
  EXPECT_THAT(sys.heard(), Contains(::testing::HasSubstr("done []")));
}

TEST(Order, a_truncated_request_flushes_stores_of_what_is_rewritten) {
  auto sys = test_system{plain_options()};
  sys.expect_wrong_calls();
  sys.add(R, 12);
  EXPECT_EQ(sys.step({{{R, 8, {{1, 2, 3}}}}, {}}), "S0{R#0<-1,R#1<-2}");
  EXPECT_EQ(sys.step({{{R, 4, {}}}, {}}), "S1{R#2<-3}");
  sys.truncate(R, 9);
  EXPECT_THAT(sys.next(R), ElementsAre(2u));
  EXPECT_EQ(sys.step(), "flush{1}");
  sys.truncate(R, 5);
  EXPECT_THAT(sys.next(R), ElementsAre(1u));
  EXPECT_EQ(sys.step(), "flush{0,1}");
  sys.truncate(R, 6);
  EXPECT_THAT(sys.notices(), ElementsAre("failed R invalid_argument"));
}

TEST(Order, S6_a_truncated_request_stores_nothing_that_was_computed_before) {
  for (auto results_came : {false, true}) {
    auto sys = test_system{plain_options(), 3};
    sys.add(P, 12);
    sys.add(R, 12);
    EXPECT_EQ(sys.step({{{P, 12, {{1, 2, 3}}}, {R, 12, {{4, 5, 6}}}}, {}}),
              "S0{P#0<-1,P#1<-2,P#2<-3}"); // R waits for room (R5).
    if (results_came)
      sys.raw_outputs({1, {{R, 12, 12}}});
    sys.truncate(R, 4);
    // Its text goes on in another way; of that nothing is computed yet.
    sys.raw_extend({R, 1, {{"x", 1}, {"y", 1}}, {}, {}});
    sys.raw_outputs({1, {{R, 12, 4}}});
    sys.done(0);
    EXPECT_EQ(sys.step(), "S1{R#0<-4}") << results_came;
  }
}

} // namespace
} // namespace kvtide::test
