// SPDX-License-Identifier: Apache-2.0

/// @file
/// R8 to R10: what `reference` does, faults included, and what `safe` does
/// instead.

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

constexpr auto reference = rule_set::reference;
constexpr auto safe = rule_set::safe;

// FAI-01, part 3
TEST(Rules, R8_a_failed_store_is_offered_again_twice) {
  {
    auto sys = test_system{plain_options(reference)};
    sys.add(R, 4);
    EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
    sys.fail(0);
    sys.out(R, 1);
    EXPECT_EQ(sys.step({{{R, 1, {{2}}}}, {}}), "-") << "lost";
  }
  auto sys = test_system{plain_options(safe)};
  sys.add(R, 8);
  EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1,R#1<-2}");
  EXPECT_EQ(sys.host(R, 0), "pending");
  sys.fail(0);
  EXPECT_EQ(sys.host(R, 0), "miss");
  EXPECT_EQ(sys.counters().free_slots, 64u);
  sys.out(R, 1);
  EXPECT_EQ(sys.step({{{R, 1, {{3}}}}, {}}), "S1{R#0<-1,R#1<-2}");
  sys.fail(1);
  EXPECT_EQ(sys.step({{{R, 0, {}}}, {}}), "S2{R#0<-1,R#1<-2}");
  sys.fail(2);
  EXPECT_EQ(sys.step({{{R, 0, {}}}, {}}), "-") << "two retries per chunk";
  EXPECT_EQ(sys.next(R), std::vector<std::size_t>{2});
}

// POL-06: somebody else relied on the store that failed.
TEST(Rules, R8_requests_that_skipped_a_failed_chunk_go_back_to_it) {
  const auto retry = [](rule_set rules) {
    auto sys = test_system{plain_options(rules)};
    sys.add(R, 5);
    EXPECT_EQ(sys.step({{{R, 5, {{1, 2}}}}, {}}), "S0{R#0<-1}");
    sys.add(Q, 5, {R, 4});
    EXPECT_EQ(sys.step({{{Q, 5, {{1, 3}}}}, {}}), "-") << "a second copy";
    (void)sys.finish(R, finish_reason::abort);
    EXPECT_EQ(sys.step(), "-");
    sys.fail(0);
    return sys.step({{{Q, 1, {}}}, {}});
  };
  EXPECT_EQ(retry(reference), "-");
  EXPECT_EQ(retry(safe), "S1{Q#0<-1}");
}

// FAI-01, parts 1 and 2
TEST(Rules, R8_a_failed_load_names_the_first_bad_token) {
  auto sys = test_system{with_ranks(2)};
  warm(sys, P, {{1, 2, 3}}, 12);
  sys.add(R, 13, {P, 12});
  EXPECT_EQ(sys.lookup(R), 12);
  sys.alloc(R, {{4, 5, 6, 7}}, 12);
  EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5,R#2->6}");
  EXPECT_EQ(sys.counters().pinned_slots, 3u);
  sys.done(1, {rank_id{1}, true, 2});
  EXPECT_EQ(sys.counters().pinned_slots, 3u) << "rank 0 may still read";
  sys.done(1, {rank_id{0}, true, 1});
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 4 [4 5 6]"));
  EXPECT_EQ(sys.computed(R), 4);
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
  EXPECT_THAT(sys.next(R), ElementsAre(1u));
  // The request lives, and what is there already is not stored again.
  EXPECT_EQ(sys.step({{{R, 9, {{4, 5, 6, 7}}}}, {}}), "-");
  EXPECT_THAT(sys.next(R), ElementsAre(3u));
}

TEST(Rules, R8_with_a_window_all_loaded_tokens_are_bad) {
  auto sys = test_system{full_and_sliding(4)};
  warm(sys, P, {{1, 2, 3}, {11, 12, 13}}, 12);
  sys.add(R, 13, {P, 12});
  EXPECT_EQ(sys.lookup(R), 12);
  sys.alloc(R, {{4, 5, 6, 7}, {0, 0, 16, 17}}, 12);
  EXPECT_EQ(sys.step(), "L1{R#0/0->4,R#1/0->5,R#2/0->6,R#2/1->16}");
  sys.done(1, {std::nullopt, true, 2});
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 0 [4 5 6 16]"));
}

TEST(Rules, R8_where_a_copy_may_still_run_new_blocks_are_used) {
  auto sys = test_system{plain_options(safe)};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  sys.alloc(R, {{4, 5, 6}}, 8);
  EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
  sys.pass_deadline();
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 0 [4 5] new"));
  EXPECT_EQ(sys.counters().pinned_slots, 2u);
  EXPECT_EQ(sys.step({{{R, 9, {{7, 8, 9}}}}, {}}), "-");
  sys.done(1);
  EXPECT_THAT(sys.notices(), ElementsAre("released R [4 5]"));
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
}

/// Leaves job 0 in flight.
void fail_chunk_1_too_often(test_system& sys) {
  sys.add(R, 8);
  EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
  EXPECT_EQ(sys.step({{{R, 4, {{2}}}}, {}}), "S1{R#1<-2}");
  sys.fail(1);
  EXPECT_EQ(sys.step({{{R, 0, {}}}, {}}), "S2{R#1<-2}");
  sys.fail(2);
  EXPECT_EQ(sys.step({{{R, 0, {}}}, {}}), "S3{R#1<-2}");
  sys.fail(3);
  EXPECT_EQ(sys.step({{{R, 0, {}}}, {}}), "-");
}

// FAI-01, part 3
TEST(Rules, R8_a_chunk_given_up_is_not_brought_up_by_an_earlier_one) {
  auto sys = test_system{plain_options(safe)};
  fail_chunk_1_too_often(sys);
  sys.fail(0);
  EXPECT_EQ(sys.step({{{R, 0, {}}}, {}}), "S4{R#0<-1}");
  sys.done(4);
  EXPECT_EQ(sys.host(R, 0), "hit");
  EXPECT_EQ(sys.host(R, 1), "miss");
  EXPECT_THAT(sys.next(R), ElementsAre(2u));
}

TEST(Rules, R8_what_is_written_behind_a_cut_may_be_tried_as_often) {
  auto sys = test_system{plain_options(safe)};
  fail_chunk_1_too_often(sys);
  sys.truncate(R, 6);
  sys.out(R, 2);
  EXPECT_EQ(sys.step({{{R, 2, {}}}, {}}), "S4{R#1<-2}");
}

TEST(Rules, R8_a_load_from_before_a_reset_fails_from_where_it_began) {
  auto sys = test_system{plain_options(safe)};
  warm(sys, P, {{1, 2, 3}}, 12);
  sys.add(R, 13, {P, 12});
  EXPECT_EQ(sys.lookup(R, 4), 8);
  sys.alloc(R, {{4, 5, 6, 7}}, 8);
  EXPECT_EQ(sys.step(), "L1{R#1->5,R#2->6}");
  sys.reset();
  EXPECT_EQ(sys.lookup(R, 12), 0);
  sys.fail(1);
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 4 [5 6]"));
}

TEST(Rules, R9_a_reset_does_not_revive_blocks_that_left_a_window) {
  const auto after = [](rule_set rules) {
    auto opts = plain_options(rules);
    opts.groups[0].sliding_window_tokens = 4;
    auto sys = test_system{opts};
    sys.add(R, 8);
    EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1,R#1<-2}");
    sys.done(0);
    sys.add(Q, 4);
    EXPECT_EQ(sys.step({{{Q, 3, {{1}}}}, {}}), "-");
    EXPECT_THAT(sys.reset(), IsEmpty());
    EXPECT_THAT(sys.reset(), IsEmpty());
    sys.out(R, 1);
    const auto out = sys.step({{{R, 1, {{3}}}}, {}});
    for (auto job : sys.jobs())
      sys.done(job);
    return out + (sys.wrong_bytes().empty() ? "" : " wrong");
  };
  EXPECT_EQ(after(reference), "S1{R#0<-1,R#1<-2} wrong");
  EXPECT_EQ(after(safe), "S1{R#1<-2}");
}

TEST(Rules, R9_slots_of_running_copies_are_not_handed_out) {
  const auto free_slots = [](rule_set rules) {
    auto sys = test_system{plain_options(rules), 4};
    sys.add(R, 8);
    EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1,R#1<-2}");
    EXPECT_EQ(sys.step(), "-");
    EXPECT_THAT(sys.reset(), ElementsAre(0u));
    EXPECT_THAT(sys.reset(), IsEmpty());
    auto out = std::vector{sys.counters().free_slots};
    EXPECT_EQ(sys.step(), "flush{0}");
    sys.done(0);
    out.push_back(sys.counters().free_slots);
    EXPECT_EQ(sys.host(R, 0), "miss") << "nothing old is published";
    return out;
  };
  EXPECT_THAT(free_slots(reference), ElementsAre(4u, 4u));
  EXPECT_THAT(free_slots(safe), ElementsAre(2u, 4u));
}

TEST(Rules, R9_a_slot_that_two_loads_read_is_kept_until_both_have_ended) {
  auto sys = test_system{plain_options(safe)};
  warm(sys, P, {{1, 2}}, 8);
  for (auto id : {R, Q}) {
    sys.add(id, 9, {P, 8});
    EXPECT_EQ(sys.lookup(id), 8);
  }
  sys.alloc(R, {{4, 5, 6}}, 8);
  sys.alloc(Q, {{7, 8, 9}}, 8);
  EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5} L2{Q#0->7,Q#1->8}");
  sys.reset();
  sys.done(1);
  EXPECT_EQ(sys.counters().quarantined_slots, 2u);
  sys.done(2);
  EXPECT_EQ(sys.counters().quarantined_slots, 0u);
  EXPECT_EQ(sys.counters().free_slots, 64u);
}

TEST(Rules, R10_bad_reports_and_lists_are_counted_and_ignored) {
  for (auto rules : {reference, safe}) {
    auto sys = test_system{plain_options(rules)};
    sys.expect_breaches();
    sys.add(R, 4);
    EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
    sys.report(7, 0, job_status::done);    // never planned
    sys.report(0, 5, job_status::done);    // no such rank
    sys.report(0, 0, job_status::done, 9); // another life
    sys.report(0, 0, job_status::drained); // was not late
    EXPECT_EQ(sys.counters().order_errors, 4u);
    EXPECT_THAT(sys.jobs(), ElementsAre(0u));
    sys.done(0);
    sys.report(0, 0, job_status::failed); // again
    EXPECT_EQ(sys.counters().order_errors, 5u);
    EXPECT_EQ(sys.host(R, 0), "hit");
    // Twice in a list, in two lists, and unknown.
    auto call = step_call{};
    call.step = 2;
    call.rows.push_back({R, row_kind::running, {}, 4, 1, 5});
    call.rows.push_back({R, row_kind::running, {}, 4, 1, 5});
    call.rows.push_back({Q, row_kind::fresh, {{3}}, 0, 4, 4});
    call.preempted = {R, R, Q};
    call.finished = {{R, finish_reason::stop, 5, 5}, {X, {}, 0, 0}};
    sys.raw_step(call);
    EXPECT_THAT(sys.tracked(), ElementsAre(R));
    // R preempted twice and scheduled twice, Q preempted and scheduled, R
    // finished without a finish. Unknown ones may be named.
    EXPECT_EQ(sys.counters().order_errors, 10u);
  }
}

} // namespace
} // namespace kvtide::test
