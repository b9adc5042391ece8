// SPDX-License-Identifier: Apache-2.0

/// @file
/// Public failures of comparable systems (docs/hazards.md), each with the
/// outcome that is right (`safe`): what a lookup finds, holds and promises, and
/// what a load writes.

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

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
  EXPECT_EQ(sys.host(P, 0), "hit");
  EXPECT_TRUE(sys.empty());
}

// The kind: however the load ends, its blocks are released once.
TEST(Hazards, LDL_01_blocks_are_released_once_however_the_load_ends) {
  using way = void (*)(test_system&);
  static constexpr way ways[] = {
    [](test_system& sys) { sys.fail(1); },
    [](test_system& sys) {
      sys.pass_deadline();
      EXPECT_THAT(sys.notices(), IsEmpty()) << "a copy may still write";
      sys.done(1);
    },
    [](test_system& sys) {
      sys.pass_deadline();
      sys.fail(1);
    },
    [](test_system& sys) {
      EXPECT_THAT(sys.reset(), ElementsAre(1u));
      EXPECT_THAT(sys.notices(), IsEmpty());
      sys.done(1);
    },
    [](test_system& sys) {
      sys.kill_rank(0);
      sys.restart_rank(0, 64);
    },
  };
  for (const auto& end : ways) {
    auto sys = test_system{plain_options()};
    warm(sys, P, {{1, 2}}, 8);
    sys.add(R, 12, {P, 8});
    EXPECT_EQ(sys.lookup(R), 8);
    sys.alloc(R, {{4, 5}}, 8);
    EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
    EXPECT_THAT(sys.finish(R, finish_reason::abort), ElementsAre(4u, 5u));
    EXPECT_EQ(sys.step(), "-");
    end(sys);
    auto heard = sys.notices();
    EXPECT_EQ(std::count(heard.begin(), heard.end(), "released R [4 5]"), 1);
    for (const auto& line : heard)
      EXPECT_NE(line.substr(0, 4), "load") << "nobody waits for it";
    (void)sys.step();
    EXPECT_THAT(sys.notices(), IsEmpty());
    EXPECT_TRUE(sys.empty());
  }
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
  EXPECT_EQ(sys.lookup(R, 8), 0) << "the host ends where the device does";
  EXPECT_EQ(sys.lookup(R, 12), 0);
  EXPECT_EQ(sys.promise(R), 0u);
  EXPECT_EQ(sys.counters().held_slots, 0u);
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
  EXPECT_EQ(sys.step({{{R, 4, {{4, 5, 6, 7}}}}, {}}), "S1{R#2<-6,R#3<-7}");
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
              job == 0 ? "S1{X#0<-1,X#1<-2}" : "S2{X#0<-1,X#1<-2}");
  }
  EXPECT_EQ(sys.lookup(R), 0);
  EXPECT_EQ(sys.step({{{R, 9, {{4, 5, 6}}}}, {}}), "-");
}

TEST(Hazards, LIV_01_waiting_for_a_load_of_somebody_else_is_bounded_too) {
  auto opts = plain_options();
  opts.max_deferrals = 3;
  auto sys = test_system{opts};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(X, 9, {P, 8});
  EXPECT_EQ(sys.lookup(X), 8);
  sys.alloc(X, {{3, 4, 5}}, 8);
  EXPECT_EQ(sys.step(), "L1{X#0->3,X#1->4}");
  sys.add(R, 9, {P, 8});
  for (auto i = 0; i < 3; ++i) {
    EXPECT_EQ(sys.lookup(R), defer);
    EXPECT_EQ(sys.step(), "-");
  }
  EXPECT_NE(sys.lookup(R), defer);
}

TEST(Hazards, LIV_06_a_pool_without_room_answers_at_once) {
  for (auto policy : {eviction_policy::lru, eviction_policy::arc}) {
    auto opts = plain_options();
    opts.policy = policy;
    auto sys = test_system{opts, 1};
    warm(sys, P, {{1}}, 4);
    sys.add(R, 5, {P, 4});
    EXPECT_EQ(sys.lookup(R), 4);
    sys.add(Q, 4);
    EXPECT_EQ(sys.step({{{Q, 4, {{3}}}}, {}}), "-");
    EXPECT_EQ(sys.counters().refused_stores, 1u);
  }
}

// The kind: a promise has many ends, and none leaves anything behind.
TEST(Hazards, LEK_01_every_end_of_a_promise_gives_all_of_it_back) {
  using way = void (*)(test_system&);
  static constexpr way ways[] = {
    [](test_system& sys) {
      sys.alloc(R, {{4, 5, 6}}, 8);
      EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
      sys.done(1);
    },
    [](test_system& sys) {
      sys.alloc(R, {{4, 5, 6}}, 4); // Takes a part of it only.
      EXPECT_EQ(sys.step(), "L1{R#0->4}");
      sys.fail(1);
    },
    [](test_system& sys) {
      sys.alloc(R, {{4, 5, 6}}, 0);
    },
    [](test_system& sys) { sys.decline(sys.promise(R)); },
    [](test_system& sys) { EXPECT_EQ(sys.lookup(R, 8), 0); },
    [](test_system& sys) { (void)sys.finish(R, finish_reason::error); },
    [](test_system& sys) { (void)sys.reset(); },
    [](test_system& sys) {
      (void)sys.step({{{R, 9, {{4, 5, 6}}}}, {}});
    },
    [](test_system& sys) {
      for (auto i = 0; i < 64; ++i)
        (void)sys.step();
    },
    [](test_system& sys) {
      sys.kill_rank(0);
      sys.restart_rank(0, 2);
    },
  };
  for (const auto& end : ways) {
    auto sys = test_system{plain_options(), 2};
    sys.expect_wrong_calls();
    warm(sys, P, {{1, 2}}, 8);
    sys.add(R, 9, {P, 8});
    EXPECT_EQ(sys.lookup(R), 8);
    EXPECT_EQ(sys.counters().held_slots, 2u);
    const auto promise = sys.promise(R);
    end(sys);
    EXPECT_EQ(sys.counters().held_slots, 0u) << "at once";
    EXPECT_EQ(sys.counters().pinned_slots, 0u);
    (void)sys.notices();
    sys.decline(promise);
    EXPECT_THAT(sys.notices(), ElementsAre("failed 0 unknown_promise"));
    (void)sys.step();
    EXPECT_FALSE(sys.pending_work());
    sys.add(Q, 8);
    EXPECT_THAT(sys.step({{{Q, 8, {{11, 12}}}}, {}}),
                HasSubstr("{Q#0<-11,Q#1<-12}"));
  }
}

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
  auto sys = test_system{full_and_sliding(4)};
  warm(sys, P, {{1, 2, 3, 4}, {0, 0, 0, 14}}, 16);
  EXPECT_EQ(sys.host(P, 2, 1), "miss");
  sys.add(R, 17, {P, 16});
  EXPECT_EQ(sys.lookup(R), 16);
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
  // Nor does it read after a preemption, its own chunks included.
  sys.done(1);
  EXPECT_EQ(sys.step({{}, {R}}), "-");
  EXPECT_EQ(sys.lookup(R), 0);
  EXPECT_EQ(sys.counters().load_jobs, 0u);
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

} // namespace
} // namespace kvtide::test
