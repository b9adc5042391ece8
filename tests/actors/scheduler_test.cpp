// SPDX-License-Identifier: Apache-2.0

/// @file
/// The scheduler with real requests, cache manager and workers. These cases
/// carry the label "seed": whoever changes what is stored, or when, starts
/// here.

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

constexpr rule_set both[] = {rule_set::reference, rule_set::safe};

// FIN-01
TEST(Scheduler, abort_queued_request_does_not_build_store_job) {
  for (auto rules : both) {
    auto sys = test_system{plain_options(rules)};
    sys.add(R, 8);
    EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1,R#1<-2}");
    sys.add(Q, 12);
    EXPECT_EQ(sys.lookup(Q), 0);
    EXPECT_THAT(sys.finish(Q, finish_reason::abort), IsEmpty());
    EXPECT_EQ(sys.step({{{R, 1, {{3}}}}, {}}), "-");
    EXPECT_THAT(sys.tracked(), ElementsAre(R));
    sys.done(0);
    EXPECT_EQ(sys.host(R, 1), "hit");
    EXPECT_EQ(sys.host(Q, 0), "miss");
    EXPECT_THAT(sys.notices(), IsEmpty());
  }
}

// PRE-01, PRE-02
TEST(Scheduler, request_preemption) {
  for (auto rules : both) {
    auto sys = test_system{plain_options(rules)};
    sys.add(R, 9);
    EXPECT_EQ(sys.step({{{R, 9, {{1, 2, 3}}}}, {}}), "S0{R#0<-1,R#1<-2}");
    sys.add(Q, 8);
    (void)sys.device_log();
    EXPECT_EQ(sys.step({{{Q, 8, {{1, 2}}}}, {R}}),
              "S1{Q#0<-1,Q#1<-2} flush{0}");
    EXPECT_THAT(sys.device_log(), ElementsAre("submit 0", "fence 0"));
    EXPECT_FALSE(sys.computes());
    const auto asked = sys.counters().lookups;
    EXPECT_EQ(sys.lookup(R), defer);
    EXPECT_EQ(sys.counters().lookups, asked + 1);
    sys.done(0);
    EXPECT_TRUE(sys.computes());
    EXPECT_EQ(sys.lookup(R), 8);
    sys.alloc(R, {{5, 6, 7}}, 8);
    EXPECT_EQ(sys.step(), "L2{R#0->5,R#1->6}");
    sys.done({1, 2});
    EXPECT_THAT(sys.notices(), ElementsAre("load_done R 2"));
    EXPECT_EQ(sys.step({{{R, 1, {{5, 6, 7}}}}, {}}), "-");
    EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
  }
}

// FIN-04: with asynchronous scheduling the end is known one step late.
TEST(Scheduler, last_block_offloaded_at_request_finish) {
  for (auto rules : both) {
    auto sys = test_system{plain_options(rules)};
    run_to_the_end(sys);
    EXPECT_EQ(sys.step(), "S1{R#1<-2}");
    EXPECT_THAT(sys.tracked(), ElementsAre(R));
    sys.done({0, 1});
    EXPECT_THAT(sys.tracked(), IsEmpty());
    EXPECT_EQ(sys.host(R, 0), "hit");
    EXPECT_EQ(sys.host(R, 1), "hit");
    EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
    EXPECT_TRUE(sys.empty());
  }
}

TEST(Scheduler, two_groups_full_and_sliding_window) {
  for (auto rules : both) {
    auto sys = test_system{full_and_sliding(8, rules)};
    sys.add(R, 16);
    // The window is 8 tokens, so blocks 11 and 12 are still to be written.
    EXPECT_EQ(sys.step({{{R, 16, {{1, 2, 3, 4}, {0, 0, 13, 14}}}}, {}}),
              "S0{R#0/0<-1,R#1/0<-2,R#2/0<-3,R#3/0<-4,R#2/1<-13,R#3/1<-14}");
    EXPECT_THAT(sys.next(R), ElementsAre(4u, 4u));
    sys.done(0);
    sys.add(Q, 20, {R, 16});
    EXPECT_EQ(sys.lookup(Q), 16);
    sys.alloc(Q, {{5, 6, 7, 8, 9}, {0, 0, 23, 24, 25}}, 16);
    EXPECT_EQ(sys.step(),
              "L1{Q#0/0->5,Q#1/0->6,Q#2/0->7,Q#3/0->8,Q#2/1->23,Q#3/1->24}");
    sys.done(1);
    EXPECT_THAT(sys.notices(), ElementsAre("load_done Q 1"));
    EXPECT_EQ(sys.step({{{Q, 4, {{5, 6, 7, 8, 9}, {0, 0, 23, 24, 25}}}}, {}}),
              "S2{Q#4/0<-9,Q#4/1<-25}");
    sys.done(2);
    EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
  }
}

// FEN-01, S4
TEST(
  Scheduler,
  flushed_job_of_the_same_step_is_submitted_before_it_is_waited_for_and_exactly_once) {
  for (auto rules : both) {
    auto sys = test_system{plain_options(rules)};
    run_to_the_end(sys);
    sys.add(Q, 4);
    (void)sys.device_log();
    EXPECT_EQ(sys.step({{{Q, 4, {{2}}}}, {}}),
              "S1{Q#0<-2} S2{R#1<-2} flush{2}");
    EXPECT_THAT(sys.device_log(), ElementsAre("submit 2", "fence 2"));
    EXPECT_FALSE(sys.computes()) << "Q would overwrite what R stores";
    sys.done(2);
    EXPECT_TRUE(sys.computes());
    EXPECT_EQ(sys.step(), "-");
    EXPECT_THAT(sys.device_log(), ElementsAre("submit 1"));
    sys.done({0, 1});
    EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
    EXPECT_EQ(sys.counters().order_errors, 0u);
  }
}

// R has computed a chunk that no step could store yet, is preempted, and its
// block goes to Q. Stale clearing reaches R although it is not scheduled.
TEST(Scheduler, preempted_block_reused_then_natural_finish) {
  for (auto rules : both) {
    auto opts = plain_options(rules);
    opts.groups[0].sliding_window_tokens = 8;
    auto sys = test_system{opts};
    sys.add(R, 7);
    EXPECT_EQ(sys.step({{{R, 7, {{1, 2}}}}, {}}), "S0{R#0<-1}");
    EXPECT_EQ(sys.step({{{R, 1, {}}}, {}}), "-");
    sys.out(R, 2);
    sys.add(Q, 4);
    sys.done(0);
    EXPECT_EQ(sys.step({{{Q, 4, {{2}}}}, {R}}), "S1{Q#0<-2}");
    (void)sys.finish(R, finish_reason::length);
    EXPECT_EQ(sys.step(), "-");
    EXPECT_THAT(sys.tracked(), ElementsAre(Q));
    sys.done(1);
    EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
  }
}

// The same for a block that left the window of a request which goes on.
TEST(Scheduler, block_out_of_the_window_reused_then_natural_finish) {
  for (auto rules : both) {
    auto opts = plain_options(rules);
    opts.groups[0].sliding_window_tokens = 4;
    auto sys = test_system{opts};
    sys.add(R, 7);
    EXPECT_EQ(sys.step({{{R, 7, {{1, 2}}}}, {}}), "S0{R#0<-1}");
    EXPECT_EQ(sys.step({{{R, 5, {{3}}}}, {}}), "-");
    sys.out(R, 6);
    sys.add(Q, 4);
    sys.done(0);
    EXPECT_EQ(sys.step({{{Q, 4, {{2}}}}, {}}), "S1{Q#0<-2}");
    (void)sys.finish(R, finish_reason::stop);
    EXPECT_EQ(sys.step(), "S2{R#2<-3}");
    sys.done({1, 2});
    EXPECT_THAT(sys.tracked(), ElementsAre(Q));
    EXPECT_EQ(sys.host(R, 1), "miss");
    EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
  }
}

} // namespace
} // namespace kvtide::test
