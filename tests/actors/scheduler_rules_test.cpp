// SPDX-License-Identifier: Apache-2.0

/// @file
/// R1 to R16 through the actors: what `reference` does, faults included, and
/// what `safe` does instead.

#include "actors/log.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

namespace kvtide::test {
namespace {

constexpr request_id A = 'A';
constexpr request_id B = 'B';
constexpr request_id C = 'C';
constexpr request_id D = 'D';
constexpr request_id E = 'E';
constexpr request_id F = 'F';
constexpr request_id G = 'G';
constexpr request_id P = 'P';
constexpr request_id Q = 'Q';
constexpr request_id R = 'R';
constexpr request_id X = 'X';
constexpr request_id Z = 'Z';

constexpr auto reference = rule_set::reference;
constexpr auto committed = rule_set::reference_committed;
constexpr auto safe = rule_set::safe;

/// Runs a prompt of whole chunks in one step, stores all of it and ends.
void keep(test_system& sys, request_id id, const block_lists& blocks,
          token_count tokens, const add_with& how = {}) {
  const auto before = sys.jobs();
  sys.add(id, tokens, how);
  (void)sys.step({{{id, tokens, blocks}}, {}});
  (void)sys.finish(id, finish_reason::abort);
  (void)sys.step();
  for (auto job : sys.jobs())
    if (std::find(before.begin(), before.end(), job) == before.end())
      sys.done(job);
}

// -- what is stored -----------------------------------------------------------

// FIN-03
TEST(Rules, R1_the_last_sampled_token_is_not_stored) {
  const auto tail = [](rule_set rules) {
    auto sys = test_system{plain_options(rules)};
    sys.add(R, 7);
    EXPECT_EQ(sys.step({{{R, 7, {{1, 2}}}}, {}}), "S0{R#0<-1}");
    sys.out(R, 1);
    (void)sys.finish(R, finish_reason::stop);
    const auto out = sys.step();
    for (auto job : sys.jobs())
      sys.done(job);
    sys.add(Q, 12, {R, 8});
    const auto hit = sys.lookup(Q);
    return out + ", hit " + std::to_string(hit.value())
         + (sys.wrong_bytes().empty() ? "" : ", wrong");
  };
  EXPECT_EQ(tail(reference), "S1{R#1<-2}, hit 8, wrong");
  EXPECT_EQ(tail(committed), "-, hit 4");
  EXPECT_EQ(tail(safe), "-, hit 4");
}

TEST(Rules, R1_a_prompt_that_is_not_computed_yet_is_not_stored) {
  const auto tail = [](rule_set rules) {
    auto sys = test_system{plain_options(rules)};
    sys.add(R, 12);
    EXPECT_EQ(sys.step({{{R, 6, {{1, 2, 3}}}}, {}}), "S0{R#0<-1}");
    (void)sys.finish(R, finish_reason::ignored);
    const auto out = sys.step();
    for (auto job : sys.jobs())
      sys.done(job);
    return out + (sys.wrong_bytes().empty() ? "" : " wrong");
  };
  EXPECT_EQ(tail(reference), "S1{R#1<-2,R#2<-3} wrong");
  EXPECT_EQ(tail(committed), "S1{R#1<-2,R#2<-3} wrong");
  EXPECT_EQ(tail(safe), "-");
}

TEST(Rules, R2_an_error_and_an_unknown_reason_store_computed_tokens_only) {
  const auto tail = [](rule_set rules, finish_reason reason) {
    auto sys = test_system{plain_options(rules)};
    sys.add(R, 12);
    EXPECT_EQ(sys.step({{{R, 6, {{1, 2, 3}}}}, {}}), "S0{R#0<-1}");
    (void)sys.finish(R, reason);
    const auto out = sys.step();
    for (auto job : sys.jobs())
      sys.done(job);
    return out + (sys.wrong_bytes().empty() ? "" : " wrong");
  };
  for (auto reason : {finish_reason::error, static_cast<finish_reason>(99)}) {
    EXPECT_EQ(tail(reference, reason), "S1{R#1<-2,R#2<-3} wrong");
    EXPECT_EQ(tail(safe, reason), "-");
  }
}

TEST(Rules, R2_an_unknown_reason_is_logged) {
  auto text = std::ostringstream{};
  auto& sinks = log().sinks();
  const auto before = std::exchange(
    sinks, {std::make_shared<spdlog::sinks::ostream_sink_st>(text)});
  {
    auto sys = test_system{plain_options(safe)};
    sys.add(R, 4);
    (void)sys.finish(R, static_cast<finish_reason>(99));
  }
  sinks = before;
  EXPECT_THAT(text.str(), ::testing::HasSubstr("reason 99"));
}

TEST(Rules, R3_a_preempted_request_has_no_block_table) {
  const auto tail = [](rule_set rules) {
    auto sys = test_system{plain_options(rules)};
    sys.add(R, 7);
    EXPECT_EQ(sys.step({{{R, 7, {{1, 2}}}}, {}}), "S0{R#0<-1}");
    EXPECT_EQ(sys.step({{{R, 1, {}}}, {}}), "-");
    sys.out(R, 2);
    sys.done(0);
    sys.add(Q, 4);
    EXPECT_EQ(sys.step({{{Q, 4, {{2}}}}, {R}}), "S1{Q#0<-2}");
    // Had computed 8 of its 9 tokens; a fresh admission starts from nothing.
    sys.set_computed(R, 8);
    (void)sys.finish(R, finish_reason::length);
    const auto out = sys.step();
    for (auto job : sys.jobs())
      sys.done(job);
    return out + (sys.wrong_bytes().empty() ? "" : " wrong");
  };
  EXPECT_EQ(tail(reference), "S2{R#1<-2} wrong");
  EXPECT_EQ(tail(safe), "-");
}

// The window reaches back to a block that P's device cache had dropped.
TEST(Rules, R4_a_chunk_with_a_hole_in_its_window_is_not_published) {
  const auto tale = [](rule_set rules) {
    auto opts = plain_options(rules);
    opts.groups[0].sliding_window_tokens = 8;
    opts.blocks_per_chunk = 2;
    auto sys = test_system{opts};
    sys.add(P, 16, {0, 0, false, true});
    EXPECT_EQ(sys.step({{{P, 16, {{1, 2, 3, 4}}}}, {}}), "-");
    sys.add(R, 17, {P, 16});
    EXPECT_EQ(sys.lookup(R, 12), 0);
    auto out = sys.step({{{R, 5, {{0, 2, 3, 4, 5}}}}, {}});
    sys.done(0);
    sys.add(Q, 9, {P, 8});
    const auto hit = sys.lookup(Q).value();
    out += ", hit " + std::to_string(hit);
    if (hit > 0) {
      sys.alloc(Q, {{21, 22, 23}}, hit);
      out += ", " + sys.step();
      sys.done(1);
    }
    return out + (sys.wrong_bytes().empty() ? "" : ", wrong");
  };
  EXPECT_EQ(tale(reference),
            "S0{R#0<-[0 2],R#1<-[3 4]}, hit 8, L1{Q#0->[21 22]}, wrong");
  EXPECT_EQ(tale(safe), "S0{R#1<-[3 4]}, hit 0");
}

TEST(Rules, R4_a_hit_that_reaches_into_a_hole_is_lowered) {
  // Window of 5: a hit that ends with chunk 1 at 16 reads tokens 12 to 15, one
  // that ends inside it at 13 reads token 9, which is not there.
  const auto hit = [](rule_set rules) {
    auto opts = plain_options(rules);
    opts.groups[0].sliding_window_tokens = 5;
    opts.blocks_per_chunk = 2;
    auto sys = test_system{opts};
    sys.add(P, 16, {0, 0, false, true});
    (void)sys.step({{{P, 16, {{1, 2, 3, 4}}}}, {}});
    sys.add(R, 17, {P, 16});
    (void)sys.lookup(R, 12);
    EXPECT_EQ(sys.step({{{R, 5, {{0, 0, 0, 4, 5}}}}, {}}), "S0{R#1<-[0 4]}");
    sys.done(0);
    // With 16 tokens known the hit may reach 15, and reads from 11 on.
    sys.add(Q, 16, {P, 16});
    sys.add(Z, 17, {P, 16});
    auto out = std::vector{sys.lookup(Q).value()};
    out.push_back(sys.lookup(Z).value());
    return out;
  };
  EXPECT_THAT(hit(reference), ElementsAre(15, 16));
  EXPECT_THAT(hit(safe), ElementsAre(0, 16));
}

TEST(Rules, R5_the_leading_part_that_fits_is_stored) {
  {
    auto sys = test_system{plain_options(reference), 2};
    sys.add(R, 12);
    EXPECT_EQ(sys.step({{{R, 12, {{1, 2, 3}}}}, {}}), "-");
    sys.out(R, 1);
    EXPECT_EQ(sys.step({{{R, 1, {{4}}}}, {}}), "-");
    EXPECT_EQ(sys.host(R, 0), "miss");
  }
  auto sys = test_system{plain_options(safe), 2};
  sys.add(R, 12);
  EXPECT_EQ(sys.step({{{R, 12, {{1, 2, 3}}}}, {}}), "S0{R#0<-1,R#1<-2}");
  EXPECT_EQ(sys.counters().refused_stores, 1u);
  sys.out(R, 1);
  sys.done(0);
  // Its own chunks are not evicted for the third.
  EXPECT_EQ(sys.step({{{R, 1, {{4}}}}, {}}), "-");
  EXPECT_EQ(sys.host(R, 0), "hit");
  EXPECT_EQ(sys.host(R, 1), "hit");
}

TEST(Rules, R5_refused_requests_are_offered_again_first_and_in_their_order) {
  const auto later = [](rule_set rules) {
    auto sys = test_system{plain_options(rules), 2};
    keep(sys, P, {{1, 2}}, 8);
    sys.add(Z, 9, {P, 8});
    EXPECT_EQ(sys.lookup(Z), 8);
    sys.alloc(Z, {{3, 4, 5}}, 8);
    EXPECT_EQ(sys.step(), "L1{Z#0->3,Z#1->4}");
    sys.add(A, 4);
    sys.add(B, 4);
    EXPECT_EQ(sys.step({{{B, 4, {{6}}}}, {}}), "-");
    EXPECT_EQ(sys.step({{{A, 4, {{7}}}}, {}}), "-");
    sys.add(C, 4);
    sys.done(1); // Two slots are idle now.
    return sys.step({{{A, 1, {{9}}}, {C, 4, {{8}}}}, {}});
  };
  EXPECT_EQ(later(reference), "S2{A#0<-7} S3{C#0<-8}") << "B is not scheduled";
  EXPECT_EQ(later(safe), "S2{B#0<-6} S3{A#0<-7}") << "C came last";
}

TEST(Rules, R5_a_request_that_lost_its_blocks_waits_no_longer) {
  auto sys = test_system{plain_options(safe), 1};
  keep(sys, P, {{1}}, 4);
  sys.add(Z, 5, {P, 4});
  EXPECT_EQ(sys.lookup(Z), 4);
  sys.add(R, 4);
  EXPECT_EQ(sys.step({{{R, 4, {{2}}}}, {}}), "-");
  sys.decline(sys.promise(Z)); // Room, but R has just lost its blocks.
  EXPECT_EQ(sys.step({{}, {R}}), "-");
  EXPECT_EQ(sys.lookup(R), 0);
  EXPECT_EQ(sys.step({{{R, 4, {{3}}}}, {}}), "S1{R#0<-3}");
}

TEST(Rules, R5_a_finished_request_is_offered_once) {
  auto sys = test_system{plain_options(safe), 1};
  sys.add(R, 8);
  EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1}");
  (void)sys.finish(R, finish_reason::abort);
  EXPECT_EQ(sys.step(), "-");
  sys.done(0);
  EXPECT_EQ(sys.step(), "-");
  EXPECT_TRUE(sys.empty());
}

TEST(Rules, R6_arc_goes_back_to_t1) {
  const auto last = [](rule_set rules) {
    auto opts = plain_options(rules);
    opts.policy = eviction_policy::arc;
    auto sys = test_system{opts, 2};
    keep(sys, A, {{1}}, 4);
    keep(sys, B, {{2}}, 4);
    keep(sys, C, {{3}}, 4); // A's chunk becomes a ghost.
    EXPECT_EQ(sys.host(A, 0), "miss");
    // Two wishes for the ghost: all of the pool should be T1.
    sys.add(D, 5, {A, 4});
    EXPECT_EQ(sys.lookup(D), 0);
    sys.add(E, 5, {A, 4});
    EXPECT_EQ(sys.lookup(E), 0);
    // The only chunk of T2 is being read.
    sys.add(F, 5, {B, 4});
    EXPECT_EQ(sys.lookup(F), 4);
    sys.alloc(F, {{8, 9}}, 4);
    sys.add(G, 4);
    const auto out = sys.step({{{G, 4, {{4}}}}, {}});
    return out + ", C " + sys.host(C, 0);
  };
  EXPECT_EQ(last(reference), "L3{F#0->8}, C hit");
  EXPECT_EQ(last(safe), "L3{F#0->8} S4{G#0<-4}, C miss");
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
  keep(sys, P, {{1}}, 4);
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

// -- what fails ---------------------------------------------------------------

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
  keep(sys, P, {{1, 2, 3}}, 12);
  sys.add(R, 13, {P, 12});
  EXPECT_EQ(sys.lookup(R, 4), 8);
  sys.alloc(R, {{4, 5, 6, 7}}, 8);
  EXPECT_EQ(sys.step(), "L1{R#1->5,R#2->6}");
  sys.reset();
  EXPECT_EQ(sys.lookup(R, 12), 0);
  sys.fail(1);
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 4 [5 6]"));
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
  auto opts = plain_options(safe);
  opts.ranks = 2;
  auto sys = test_system{opts};
  keep(sys, P, {{1, 2, 3}}, 12);
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
  auto opts = plain_options(safe);
  opts.groups.resize(2);
  opts.groups[1].tokens_per_block = 4;
  opts.groups[1].sliding_window_tokens = 4;
  auto sys = test_system{opts};
  keep(sys, P, {{1, 2, 3}, {11, 12, 13}}, 12);
  sys.add(R, 13, {P, 12});
  EXPECT_EQ(sys.lookup(R), 12);
  sys.alloc(R, {{4, 5, 6, 7}, {0, 0, 16, 17}}, 12);
  EXPECT_EQ(sys.step(), "L1{R#0/0->4,R#1/0->5,R#2/0->6,R#2/1->16}");
  sys.done(1, {std::nullopt, true, 2});
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 0 [4 5 6 16]"));
}

TEST(Rules, R8_where_a_copy_may_still_run_new_blocks_are_used) {
  auto sys = test_system{plain_options(safe)};
  keep(sys, P, {{1, 2}}, 8);
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

// -- reset --------------------------------------------------------------------

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

TEST(Rules, R10_bad_reports_and_lists_are_counted_and_ignored) {
  for (auto rules : {reference, safe}) {
    auto sys = test_system{plain_options(rules)};
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
    EXPECT_GT(sys.counters().order_errors, 8u);
  }
}

// -- what is kept -------------------------------------------------------------

// TOC-01
TEST(Rules, R11_what_a_lookup_promised_is_what_the_load_gets) {
  const auto tale = [](rule_set rules) {
    auto sys = test_system{plain_options(rules), 2};
    keep(sys, P, {{1, 2}}, 8);
    sys.add(R, 9, {P, 8});
    EXPECT_EQ(sys.lookup(R), 8);
    sys.add(Q, 4);
    auto out = std::vector{sys.step({{{Q, 4, {{3}}}}, {}})};
    sys.alloc(R, {{4, 5, 6}}, 8);
    out.push_back(sys.step());
    for (const auto& line : sys.notices())
      out.push_back(line);
    return out;
  };
  EXPECT_THAT(tale(reference),
              ElementsAre("S1{Q#0<-3}", "-", "load_failed R 2 from 0 [4 5]"));
  EXPECT_THAT(tale(safe), ElementsAre("-", "L1{R#0->4,R#1->5}"));
}

TEST(Rules, R11_a_promise_ends) {
  using end = void (*)(test_system&);
  static constexpr end ends[] = {
    [](test_system& sys) {
      sys.alloc(R, {{4, 5, 6}}, 0);
    },
    [](test_system& sys) { sys.decline(sys.promise(R)); },
    [](test_system& sys) { (void)sys.finish(R, finish_reason::abort); },
    [](test_system& sys) { (void)sys.reset(); },
    [](test_system& sys) {
      for (auto i = 0; i < 64; ++i)
        (void)sys.step();
    },
    [](test_system& sys) {
      (void)sys.step({{{R, 9, {{4, 5, 6}}}}, {}});
    },
  };
  for (const auto& how : ends) {
    auto sys = test_system{plain_options(safe)};
    keep(sys, P, {{1, 2}}, 8);
    sys.add(R, 9, {P, 8});
    EXPECT_EQ(sys.lookup(R), 8);
    EXPECT_EQ(sys.counters().held_slots, 2u);
    const auto first = sys.promise(R);
    how(sys);
    EXPECT_EQ(sys.counters().held_slots, 0u);
    (void)sys.notices();
    sys.decline(first);
    EXPECT_THAT(sys.notices(), ElementsAre("failed 0 unknown_promise"));
  }
}

TEST(Rules, R11_one_hit_is_held_whole_and_further_ones_up_to_half) {
  auto sys = test_system{plain_options(safe), 4};
  keep(sys, P, {{1, 2, 3}}, 12);
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

// POL-03
TEST(Rules, R12_a_prefix_goes_tail_first_in_any_order_of_completion) {
  const auto victims = [](rule_set rules, std::vector<job_id> order) {
    auto sys = test_system{plain_options(rules), 3};
    sys.add(R, 12);
    EXPECT_EQ(sys.step({{{R, 4, {{1, 2, 3}}}}, {}}), "S0{R#0<-1}");
    EXPECT_EQ(sys.step({{{R, 4, {}}}, {}}), "S1{R#1<-2}");
    EXPECT_EQ(sys.step({{{R, 4, {}}}, {}}), "S2{R#2<-3}");
    sys.done(order);
    (void)sys.finish(R, finish_reason::abort);
    EXPECT_EQ(sys.step(), "-");
    auto out = sys.idle_chunks();
    sys.add(Q, 4);
    EXPECT_EQ(sys.step({{{Q, 4, {{9}}}}, {}}), "S3{Q#0<-9}");
    sys.add(Z, 13, {R, 12});
    const auto hit = sys.lookup(Z);
    out.push_back("hit " + std::to_string(hit.value()));
    return out;
  };
  const auto tail_first = ElementsAre("R#2", "R#1", "R#0", "hit 8");
  EXPECT_THAT(victims(safe, {2, 0, 1}), tail_first);
  EXPECT_THAT(victims(safe, {0, 1, 2}), tail_first);
  EXPECT_THAT(victims(safe, {0, 2, 1}), tail_first);
  EXPECT_THAT(victims(reference, {0, 2, 1}),
              ElementsAre("R#0", "R#2", "R#1", "hit 0"));
}

TEST(Rules, R12_the_last_outcome_moves_the_keys_once_more) {
  auto sys = test_system{plain_options(safe)};
  sys.add(R, 12);
  EXPECT_EQ(sys.step({{{R, 8, {{1, 2, 3}}}}, {}}), "S0{R#0<-1,R#1<-2}");
  EXPECT_EQ(sys.step({{{R, 4, {}}}, {}}), "S1{R#2<-3}");
  (void)sys.finish(R, finish_reason::abort);
  EXPECT_EQ(sys.step(), "-");
  sys.done(0);
  keep(sys, Q, {{4}}, 4);
  EXPECT_THAT(sys.idle_chunks(), ElementsAre("R#1", "R#0", "Q#0"));
  sys.done(1);
  EXPECT_THAT(sys.idle_chunks(), ElementsAre("Q#0", "R#2", "R#1", "R#0"));
}

TEST(Rules, R12_a_preemption_moves_the_keys) {
  const auto order = [](rule_set rules) {
    auto sys = test_system{plain_options(rules)};
    sys.add(R, 9);
    EXPECT_EQ(sys.step({{{R, 9, {{1, 2, 3}}}}, {}}), "S0{R#0<-1,R#1<-2}");
    sys.done(0);
    sys.add(Q, 5);
    EXPECT_EQ(sys.step({{{Q, 5, {{4, 5}}}}, {}}), "S1{Q#0<-4}");
    sys.done(1);
    EXPECT_EQ(sys.step({{}, {R}}), "-");
    return sys.idle_chunks();
  };
  EXPECT_THAT(order(reference), ElementsAre("R#0", "R#1", "Q#0"));
  EXPECT_THAT(order(safe), ElementsAre("Q#0", "R#1", "R#0"));
}

TEST(Rules, R12_a_hundred_decode_steps_are_one_access) {
  const auto order = [](rule_set rules) {
    auto sys = test_system{plain_options(rules)};
    sys.add(R, 4);
    EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
    sys.done(0);
    keep(sys, Q, {{2}}, 4);
    for (block_id block = 3; block < 28; ++block) {
      sys.out(R, 1);
      (void)sys.step({{{R, 1, {{block}}}}, {}});
      for (auto i = 0; i < 3; ++i) {
        sys.out(R, 1);
        (void)sys.step({{{R, 1, {}}}, {}});
      }
      for (auto job : sys.jobs())
        sys.done(job);
    }
    return sys.idle_chunks().front();
  };
  EXPECT_EQ(order(reference), "Q#0") << "each store job touches all";
  EXPECT_EQ(order(safe), "R#25");
}

// -- what is found ------------------------------------------------------------

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
  keep(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  sys.decline(sys.promise(R));
  keep(sys, Q, {{3}}, 4);
  EXPECT_EQ(sys.host(P, 1), "miss");
  sys.alloc(R, {{4, 5, 6}}, 8);
  // Nothing was copied, P#0 included.
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 2 from 0 [4 5]"));
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
  EXPECT_THAT(sys.jobs(), IsEmpty());
  EXPECT_EQ(sys.step({{{R, 9, {{4, 5, 6}}}}, {}}), "S3{R#1<-5}");
  sys.done(3);
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

// HYB-01, variant
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
  const auto flush = [](rule_set rules, const block_lists& blocks) {
    auto sys = test_system{plain_options(rules)};
    sys.add(R, 8);
    EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1,R#1<-2}");
    (void)sys.finish(R, finish_reason::abort);
    EXPECT_EQ(sys.step(), "-");
    sys.add(Q, 4);
    EXPECT_EQ(sys.lookup(Q), 0);
    sys.alloc(Q, blocks, 0);
    return sys.step();
  };
  EXPECT_EQ(flush(reference, {{2, 3}}), "-");
  EXPECT_EQ(flush(safe, {{2, 3}}), "flush{0}");
  EXPECT_EQ(flush(safe, {{0, 0}}), "-");
}

// LDL-06
TEST(Rules, R16_at_least_one_token_is_left_to_compute) {
  const auto hit = [](rule_set rules, token_count local) {
    auto sys = test_system{plain_options(rules)};
    keep(sys, P, {{1, 2}}, 8);
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
