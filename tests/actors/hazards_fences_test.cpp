// SPDX-License-Identifier: Apache-2.0

/// @file
/// Public failures of comparable systems (docs/hazards.md), each with the
/// outcome that is right (`safe`): blocks that are used again while a store
/// still reads them.

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

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

// By a request that nobody schedules. The placeholder is no block.
TEST(Hazards, FEN_02_an_allocation_without_a_load_arms_the_fence) {
  for (const auto& blocks : {block_lists{{2, 3}}, block_lists{{0, 0}}}) {
    const auto takes_a_block = blocks.front().front() != no_block;
    auto sys = test_system{plain_options()};
    sys.add(R, 8);
    EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1,R#1<-2}");
    (void)sys.finish(R, finish_reason::abort);
    EXPECT_EQ(sys.step(), "-");
    sys.add(Q, 4);
    EXPECT_EQ(sys.lookup(Q), 0);
    sys.alloc(Q, blocks, 0);
    EXPECT_EQ(sys.step(), takes_a_block ? "flush{0}" : "-");
    EXPECT_EQ(sys.computes(), !takes_a_block);
    sys.done(0);
    EXPECT_TRUE(sys.computes());
    EXPECT_THAT(sys.watched(), IsEmpty());
    EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
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

// The kind: whoever takes the block, in whatever way. One more is FEN-02.
TEST(Hazards, FEN_01_every_way_to_take_a_block_is_seen) {
  using way = std::string (*)(test_system&);
  static constexpr way ways[] = {
    // A fresh request.
    [](test_system& sys) {
      EXPECT_EQ(sys.step(), "-");
      sys.add(Z, 3);
      return sys.step({{{Z, 3, {{2}}}}, {}});
    },
    // A running one.
    [](test_system& sys) {
      EXPECT_EQ(sys.step(), "-");
      return sys.step({{{Q, 1, {{2}}}}, {}});
    },
    // A resumed one.
    [](test_system& sys) {
      EXPECT_EQ(sys.step({{}, {Q}}), "-");
      return sys.step({{{Q, 3, {{2}}}}, {}});
    },
    // A load.
    [](test_system& sys) {
      EXPECT_EQ(sys.step(), "-");
      sys.add(Z, 5, {P, 4});
      EXPECT_EQ(sys.lookup(Z), 4);
      sys.alloc(Z, {{2, 3}}, 4);
      return sys.step().substr(std::string{"L2{Z#0->2} "}.size());
    },
  };
  for (const auto& take : ways) {
    auto sys = test_system{plain_options()};
    warm(sys, P, {{20}}, 4);
    sys.add(R, 8);
    sys.add(Q, 3);
    EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}, {Q, 3, {{9}}}}, {}}),
              "S1{R#0<-1,R#1<-2}");
    (void)sys.finish(R, finish_reason::abort);
    EXPECT_EQ(take(sys), "flush{1}");
    EXPECT_FALSE(sys.computes());
    sys.done(1);
    EXPECT_TRUE(sys.computes());
    EXPECT_THAT(sys.watched(), IsEmpty());
    EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
  }
}

TEST(Hazards, FEN_01_a_block_of_a_window_is_watched_while_its_request_runs) {
  auto opts = plain_options();
  opts.groups[0].sliding_window_tokens = 4;
  auto sys = test_system{opts};
  sys.add(R, 8);
  EXPECT_EQ(sys.step({{{R, 8, {{1, 2}}}}, {}}), "S0{R#0<-1,R#1<-2}");
  sys.add(Q, 3);
  EXPECT_EQ(sys.step({{{Q, 3, {{1}}}}, {}}), "flush{0}");
  sys.done(0);
  EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
}

} // namespace
} // namespace kvtide::test
