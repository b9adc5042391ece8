// SPDX-License-Identifier: Apache-2.0

/// @file
/// R7, R11 and R13 to R16: what `reference` does, faults included, and what
/// `safe` does instead.

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

constexpr auto reference = rule_set::reference;
constexpr auto safe = rule_set::safe;

/// A full group with chunks of 4 and a window of 8 with chunks of 8, of which
/// the host has R#0/0 to R#2/0 and R#1/1.
void keep_uneven(test_system& sys) {
  sys.add(R, 17);
  ASSERT_EQ(sys.step({{{R, 17, {{1, 2, 3, 4, 5}, {0, 12, 13}}}}, {}}),
            "S0{R#0/0<-1,R#1/0<-2,R#2/0<-3,R#3/0<-4,R#1/1<-12}");
  sys.done(0);
  sys.add(Z, 17, {R, 16});
  ASSERT_EQ(sys.lookup(Z), 16); // Touches, so that the tail is oldest.
  (void)sys.finish(Z, finish_reason::abort);
  sys.add(X, 4);
  ASSERT_EQ(sys.step({{{X, 4, {{6}, {16}}}}, {}}), "S1{X#0/0<-6}");
  sys.done(1);
  ASSERT_EQ(sys.host(R, 3), "miss");
  ASSERT_EQ(sys.host(R, 1, 1), "hit");
}

options uneven(rule_set rules) {
  auto out = plain_options(rules);
  out.groups.resize(2);
  out.groups[1].tokens_per_block = 8;
  out.groups[1].sliding_window_tokens = 8;
  return out;
}

// LIV-01
TEST(Rules, R7_a_lookup_is_deferred_only_so_often) {
  for (auto rules : {reference, safe}) {
    auto sys = test_system{plain_options(rules)};
    sys.add(P, 8);
    EXPECT_EQ(sys.step({{{P, 8, {{1, 2}}}}, {}}), "S0{P#0<-1,P#1<-2}");
    sys.add(R, 9, {P, 8});
    for (auto i = 0; i < 32; ++i)
      ASSERT_EQ(sys.lookup(R), defer);
    if (rules == safe) {
      EXPECT_EQ(sys.lookup(R), 0);
      EXPECT_EQ(sys.counters().deferrals, 32u);
    } else {
      for (auto i = 0; i < 100; ++i)
        ASSERT_EQ(sys.lookup(R), defer);
    }
  }
}

TEST(Rules, R7_what_is_ready_is_answered_and_own_jobs_are_not_counted) {
  auto opts = plain_options(safe);
  opts.max_deferrals = 2;
  auto sys = test_system{opts};
  warm(sys, P, {{1}}, 4);
  sys.add(Q, 8, {P, 4});
  EXPECT_EQ(sys.lookup(Q), 4);
  sys.decline(sys.promise(Q));
  EXPECT_EQ(sys.step({{{Q, 8, {{1, 2}}}}, {}}), "S1{Q#1<-2}");
  sys.add(R, 9, {Q, 8});
  EXPECT_EQ(sys.lookup(R), defer);
  EXPECT_EQ(sys.lookup(R), defer);
  EXPECT_EQ(sys.lookup(R), 4) << "P#0 is ready";
  // Q waits for its own store, however often it asks.
  EXPECT_EQ(sys.step({{}, {Q}}), "flush{1}");
  for (auto i = 0; i < 40; ++i)
    ASSERT_EQ(sys.lookup(Q), defer);
}

TEST(Rules, R7_each_admission_may_be_deferred_as_often) {
  auto opts = plain_options(safe);
  opts.max_deferrals = 2;
  auto sys = test_system{opts};
  sys.add(P, 4);
  EXPECT_EQ(sys.step({{{P, 4, {{1}}}}, {}}), "S0{P#0<-1}");
  sys.add(R, 5, {P, 4});
  for (auto admission : {0, 1}) {
    EXPECT_EQ(sys.lookup(R), defer);
    EXPECT_EQ(sys.lookup(R), defer);
    EXPECT_EQ(sys.lookup(R), 0) << "admission " << admission;
    EXPECT_EQ(sys.step({{{R, 5, {{2, 3}}}}, {}}), "-") << "P stores it";
    EXPECT_EQ(sys.step({{}, {R}}), "-");
  }
}

// TOC-01
TEST(Rules, R11_what_a_lookup_promised_is_what_the_load_gets) {
  const auto tale = [](rule_set rules, eviction_policy policy) {
    auto opts = plain_options(rules);
    opts.policy = policy;
    auto sys = test_system{opts, 2};
    warm(sys, P, {{1, 2}}, 8);
    sys.add(R, 9, {P, 8});
    EXPECT_EQ(sys.lookup(R), 8);
    sys.add(Q, 4);
    auto out = std::vector{sys.step({{{Q, 4, {{3}}}}, {}})};
    sys.alloc(R, {{4, 5, 6}}, 8);
    out.push_back(sys.step());
    for (auto job : sys.jobs())
      sys.done(job);
    for (const auto& line : sys.notices())
      out.push_back(line);
    out.push_back(sys.step());
    return out;
  };
  for (auto policy : {eviction_policy::lru, eviction_policy::arc}) {
    EXPECT_THAT(
      tale(reference, policy),
      ElementsAre("S1{Q#0<-3}", "-", "load_failed R 2 from 0 [4 5]", "-"));
    // The store that was refused has waited.
    EXPECT_THAT(tale(safe, policy), ElementsAre("-", "L1{R#0->4,R#1->5}",
                                                "load_done R 1", "S2{Q#0<-3}"));
  }
}

TEST(Rules, R11_a_reset_ends_what_a_lookup_holds) {
  auto sys = test_system{plain_options(safe), 1};
  warm(sys, P, {{1}}, 4);
  sys.add(Q, 5, {P, 4});
  EXPECT_EQ(sys.lookup(Q), 4);
  (void)sys.reset();
  sys.add(A, 4);
  sys.add(B, 4);
  EXPECT_EQ(sys.step({{{A, 4, {{2}}}, {B, 4, {{3}}}}, {}}), "S1{A#0<-2}");
  EXPECT_EQ(sys.counters().refused_stores, 1u);
  EXPECT_EQ(sys.lookup(Q), 0);
  EXPECT_EQ(sys.step(), "-");
  EXPECT_EQ(sys.counters().refused_stores, 1u) << "no slot became free";
}

TEST(Rules, R11_one_hit_is_held_whole_and_further_ones_up_to_half) {
  auto sys = test_system{plain_options(safe), 4};
  warm(sys, P, {{1, 2, 3}}, 12);
  sys.add(R, 13, {P, 12});
  EXPECT_EQ(sys.lookup(R), 12);
  EXPECT_EQ(sys.counters().held_slots, 3u);
  sys.decline(sys.promise(R));
  EXPECT_EQ(sys.counters().held_slots, 0u);
  sys.add(Q, 5, {P, 4});
  EXPECT_EQ(sys.lookup(Q), 4);
  EXPECT_EQ(sys.lookup(R), 12);
  EXPECT_EQ(sys.promise(R), 0u) << "three of four would be held";
  EXPECT_EQ(sys.counters().held_slots, 1u);
}

TEST(Rules, R13_the_search_covers_all_that_the_load_will_read) {
  {
    auto sys = test_system{uneven(reference), 5};
    keep_uneven(sys);
    sys.add(Q, 17, {R, 16});
    EXPECT_EQ(sys.lookup(Q), 12) << "the window reaches back to R#0/1";
    sys.alloc(Q, {{21, 22, 23, 24, 25}, {31, 32, 33}}, 12);
    EXPECT_EQ(sys.step(), "-");
    EXPECT_THAT(sys.notices(),
                ElementsAre("load_failed Q 2 from 0 [21 22 23 31 32]"));
  }
  auto sys = test_system{uneven(safe), 5};
  keep_uneven(sys);
  sys.add(Q, 17, {R, 16});
  EXPECT_EQ(sys.lookup(Q), 0);
}

TEST(Rules, R13_a_key_that_is_gone_makes_a_load_that_fails_at_once) {
  auto sys = test_system{plain_options(safe), 2};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  sys.decline(sys.promise(R));
  warm(sys, Q, {{3}}, 4);
  EXPECT_EQ(sys.host(P, 1), "miss");
  sys.alloc(R, {{4, 5, 6}}, 8);
  // Nothing was copied, P#0 included.
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 2 from 0 [4 5]"));
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
  EXPECT_EQ(sys.counters().failed_jobs, 1u);
  EXPECT_THAT(sys.jobs(), IsEmpty());
  EXPECT_EQ(sys.step({{{R, 9, {{4, 5, 6}}}}, {}}), "S3{R#1<-5}");
  sys.done(3);
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

TEST(Rules, R13_what_the_device_had_stays_good_if_a_load_fails_at_once) {
  auto opts = plain_options(safe);
  opts.blocks_per_chunk = 2;
  auto sys = test_system{opts, 2};
  warm(sys, P, {{1, 2, 3, 4}}, 16);
  sys.add(R, 17, {P, 16});
  EXPECT_EQ(sys.lookup(R, 4), 12) << "behind the first half of a chunk";
  sys.decline(sys.promise(R));
  warm(sys, Q, {{5, 6}}, 8);
  sys.alloc(R, {{7, 8, 9, 10, 11}}, 12);
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 2 from 4 [8 9 10]"));
}

// HYB-01
TEST(Rules, R14_a_draft_search_looks_one_chunk_further) {
  const auto hit = [](rule_set rules) {
    auto opts = plain_options(rules);
    opts.groups.resize(2);
    opts.groups[1].tokens_per_block = 4;
    opts.groups[1].draft = true;
    auto sys = test_system{opts, 11};
    sys.add(P, 20);
    (void)sys.step({{{P, 20, {{1, 2, 3, 4, 5}, {11, 12, 13, 14, 15}}}}, {}});
    sys.done(0);
    sys.add(Z, 20, {P, 20});
    EXPECT_EQ(sys.lookup(Z).has_value(), true); // Touches the keys.
    (void)sys.finish(Z, finish_reason::abort);
    sys.add(X, 4);
    EXPECT_EQ(sys.step({{{X, 4, {{6}, {16}}}}, {}}), "S1{X#0/0<-6,X#0/1<-16}");
    EXPECT_EQ(sys.host(P, 4, 0), "miss");
    EXPECT_EQ(sys.host(P, 4, 1), "hit");
    sys.add(R, 21, {P, 20});
    return sys.lookup(R).value();
  };
  EXPECT_EQ(hit(reference), 12);
  EXPECT_EQ(hit(safe), 16);
}

// FEN-02
TEST(Rules, R15_an_allocation_without_a_load_counts_as_fresh) {
  const auto flush = [](rule_set rules) {
    auto sys = test_system{plain_options(rules)};
    sys.add(R, 8);
    EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1,R#1<-2}");
    (void)sys.finish(R, finish_reason::abort);
    EXPECT_EQ(sys.step(), "-");
    sys.add(Q, 4);
    EXPECT_EQ(sys.lookup(Q), 0);
    sys.alloc(Q, {{2, 3}}, 0);
    return sys.step();
  };
  EXPECT_EQ(flush(reference), "-");
  EXPECT_EQ(flush(safe), "flush{0}");
}

// LDL-06
TEST(Rules, R16_at_least_one_token_is_left_to_compute) {
  const auto hit = [](rule_set rules, token_count local) {
    auto sys = test_system{plain_options(rules)};
    warm(sys, P, {{1, 2}}, 8);
    sys.add(R, 8, {P, 8});
    return sys.lookup(R, local).value();
  };
  EXPECT_EQ(hit(reference, 0), 8);
  EXPECT_EQ(hit(reference, 4), 4);
  EXPECT_EQ(hit(safe, 0), 7);
  EXPECT_EQ(hit(safe, 4), 3);
}

} // namespace
} // namespace kvtide::test
