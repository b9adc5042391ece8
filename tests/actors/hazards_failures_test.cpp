// SPDX-License-Identifier: Apache-2.0

/// @file
/// Public failures of comparable systems (docs/hazards.md), each with the
/// outcome that is right (`safe`): copies that fail, ranks that disagree, and
/// resets.

#include "tests/actors/request_states.hpp"
#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

TEST(Hazards, AGG_01_a_store_is_complete_when_all_ranks_reported) {
  for (rank_id count : {1u, 2u, 4u}) {
    for (rank_id last = 0; last < count; ++last) {
      auto sys = test_system{with_ranks(count)};
      sys.add(R, 4);
      EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
      (void)sys.finish(R, finish_reason::abort);
      (void)sys.step();
      for (rank_id rank = 0; rank < count; ++rank)
        if (rank != last)
          sys.done(0, {rank});
      sys.add(Q, 5, {R, 4});
      EXPECT_EQ(sys.lookup(Q), defer);
      EXPECT_THAT(sys.watched(), ElementsAre(1u));
      sys.done(0, {last});
      EXPECT_EQ(sys.lookup(Q), 4);
      EXPECT_THAT(sys.watched(), IsEmpty());
    }
  }
}

TEST(Hazards, AGG_01_a_load_is_complete_when_all_ranks_reported) {
  for (rank_id count : {1u, 2u, 4u}) {
    for (rank_id last = 0; last < count; ++last) {
      auto sys = test_system{with_ranks(count)};
      warm(sys, P, {{1}}, 4);
      sys.add(R, 5, {P, 4});
      EXPECT_EQ(sys.lookup(R), 4);
      sys.alloc(R, {{4, 5}}, 4);
      EXPECT_EQ(sys.step(), "L1{R#0->4}");
      for (rank_id rank = 0; rank < count; ++rank)
        if (rank != last)
          sys.done(1, {rank});
      EXPECT_THAT(sys.notices(), IsEmpty());
      EXPECT_EQ(sys.counters().pinned_slots, 1u);
      sys.done(1, {last});
      EXPECT_THAT(sys.notices(), ElementsAre("load_done R 1"));
      EXPECT_EQ(sys.counters().pinned_slots, 0u);
    }
  }
}

TEST(Hazards, AGG_04_the_pool_has_what_every_rank_has) {
  auto config = system_config{};
  config.opts = with_ranks(2);
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

TEST(Hazards, AGG_04_the_rank_with_the_fewest_slots_decides) {
  for (const auto& slots : std::vector<std::vector<std::uint64_t>>{
         {8, 10}, {10, 8}, {9, 8, 10}, {8, 8, 8, 8}, {8}}) {
    auto config = system_config{};
    config.opts = with_ranks(static_cast<std::uint32_t>(slots.size()));
    config.slots = slots;
    auto sys = test_system{config};
    EXPECT_EQ(sys.counters().host_slots, 8u);
  }
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

// The kind: a reset, and a second one, in every state of a request.
TEST(Hazards, RST_01_no_state_survives_a_reset) {
  for (const auto& state : request_states) {
    for (auto resets : {1, 2}) {
      SCOPED_TRACE(std::string{state.name} + ", resets "
                   + std::to_string(resets));
      auto sys = test_system{plain_options()};
      state.reach(sys);
      (void)sys.events();
      const auto running = sys.reset();
      if (resets == 2) {
        EXPECT_THAT(sys.reset(), IsEmpty());
      }
      EXPECT_EQ(sys.lookup(R), 0) << "neither a hit nor a deferral";
      EXPECT_EQ(sys.counters().held_slots, 0u);
      (void)sys.step();
      for (auto job : running)
        sys.done(job); // An outcome from before the reset (S11).
      for (std::size_t chunk = 0; chunk < 3; ++chunk)
        EXPECT_EQ(sys.host(R, chunk), "miss");
      EXPECT_THAT(sys.events(), IsEmpty());
      (void)sys.finish(R, finish_reason::abort);
      EXPECT_EQ(sys.step(), "-");
      EXPECT_TRUE(sys.empty());
      EXPECT_EQ(sys.counters().free_slots, 64u);
      EXPECT_THAT(sys.wrong_bytes(), IsEmpty());
    }
  }
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

} // namespace
} // namespace kvtide::test
