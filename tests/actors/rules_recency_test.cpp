// SPDX-License-Identifier: Apache-2.0

/// @file
/// R12: what `reference` does, faults included, and what `safe` does
/// instead.

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

using ::testing::ElementsAre;

namespace kvtide::test {
namespace {

constexpr auto reference = rule_set::reference;
constexpr auto safe = rule_set::safe;

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
  warm(sys, Q, {{4}}, 4);
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
    warm(sys, Q, {{2}}, 4);
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

TEST(Rules, R12_a_finish_moves_the_keys_before_the_pool_is_asked) {
  const auto order = [](rule_set rules) {
    auto sys = test_system{plain_options(rules)};
    sys.add(R, 8);
    EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1,R#1<-2}");
    sys.done(0);
    warm(sys, Q, {{4}}, 4);
    (void)sys.finish(R, finish_reason::abort);
    EXPECT_EQ(sys.step(), "-");
    return sys.idle_chunks();
  };
  EXPECT_THAT(order(reference), ElementsAre("R#0", "R#1", "Q#0"));
  EXPECT_THAT(order(safe), ElementsAre("Q#0", "R#1", "R#0"));
}

} // namespace
} // namespace kvtide::test
