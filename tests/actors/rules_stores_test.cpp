// SPDX-License-Identifier: Apache-2.0

/// @file
/// R1 to R6: what `reference` does, faults included, and what `safe` does
/// instead.

#include "actors/log.hpp"
#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using ::testing::ElementsAre;

namespace kvtide::test {
namespace {

constexpr auto reference = rule_set::reference;
constexpr auto committed = rule_set::reference_committed;
constexpr auto safe = rule_set::safe;

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
    sys.expect_wrong_calls();
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
    sys.expect_wrong_calls();
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
    warm(sys, P, {{1, 2}}, 8);
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

/// The only slot is held for Z, so that R waits.
void refuse_r(test_system& sys) {
  warm(sys, P, {{1}}, 4);
  sys.add(Z, 5, {P, 4});
  EXPECT_EQ(sys.lookup(Z), 4);
  sys.add(R, 4);
  EXPECT_EQ(sys.step({{{R, 4, {{2}}}}, {}}), "-");
}

TEST(Rules, R5_a_refused_request_is_offered_again_when_a_promise_ends) {
  auto sys = test_system{plain_options(safe), 1};
  refuse_r(sys);
  EXPECT_EQ(sys.step(), "-");
  sys.decline(sys.promise(Z));
  EXPECT_EQ(sys.step(), "S1{R#0<-2}");
}

TEST(Rules, R5_a_refused_request_is_offered_again_when_a_load_needs_nothing) {
  auto sys = test_system{plain_options(safe), 1};
  refuse_r(sys);
  // Another request's block holds it by now: the promise ends unused.
  sys.alloc(Z, {{3, 4}}, 4, std::vector<std::vector<std::uint8_t>>{{1, 0}});
  EXPECT_EQ(sys.step(), "S2{R#0<-2}");
}

TEST(Rules, R5_a_request_that_lost_its_blocks_waits_no_longer) {
  auto sys = test_system{plain_options(safe), 1};
  refuse_r(sys);
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
    warm(sys, A, {{1}}, 4);
    warm(sys, B, {{2}}, 4);
    warm(sys, C, {{3}}, 4); // A's chunk becomes a ghost.
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

} // namespace
} // namespace kvtide::test
