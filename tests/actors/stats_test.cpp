// SPDX-License-Identifier: Apache-2.0

/// @file
/// Every number of `stats` counts what its comment says, and nothing else.

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

using numbers = std::map<std::string, std::uint64_t>;

/// Those that are not zero.
numbers counted(test_system& sys) {
  const auto x = sys.counters();
  auto out = numbers{
    {"tracked_requests", x.tracked_requests},
    {"jobs_in_flight", x.jobs_in_flight},
    {"free_slots", x.free_slots},
    {"quarantined_slots", x.quarantined_slots},
    {"pinned_slots", x.pinned_slots},
    {"held_slots", x.held_slots},
    {"writing_slots", x.writing_slots},
    {"watched_blocks", x.watched_blocks},
    {"sliding_entries", x.sliding_entries},
    {"steps", x.steps},
    {"lookups", x.lookups},
    {"deferrals", x.deferrals},
    {"hit_tokens", x.hit_tokens},
    {"store_jobs", x.store_jobs},
    {"load_jobs", x.load_jobs},
    {"failed_jobs", x.failed_jobs},
    {"stored_chunks", x.stored_chunks},
    {"loaded_chunks", x.loaded_chunks},
    {"evicted_chunks", x.evicted_chunks},
    {"refused_stores", x.refused_stores},
    {"flushed_jobs", x.flushed_jobs},
    {"resets", x.resets},
    {"order_errors", x.order_errors},
    {"lost_requests", x.lost_requests},
    {"lost_caches", x.lost_caches},
    {"late_messages", x.late_messages},
  };
  std::erase_if(out, [](const auto& entry) { return entry.second == 0; });
  return out;
}

TEST(Stats, CountAStoreFromItsPlanToItsEnd) {
  auto sys = test_system{plain_options(), 4};
  EXPECT_EQ(counted(sys), (numbers{{"free_slots", 4}}));
  EXPECT_EQ(sys.counters().host_slots, 4u);
  sys.add(P, 8);
  EXPECT_EQ(sys.step({{{P, 8, {{1, 2}}}}, {}}), "S0{P#0<-1,P#1<-2}");
  EXPECT_EQ(counted(sys), (numbers{{"tracked_requests", 1},
                                   {"jobs_in_flight", 1},
                                   {"free_slots", 2},
                                   {"writing_slots", 2},
                                   {"steps", 1},
                                   {"store_jobs", 1}}));
  (void)sys.finish(P, finish_reason::stop);
  EXPECT_EQ(sys.counters().watched_blocks, 2u);
  (void)sys.step();
  sys.done(0);
  EXPECT_EQ(counted(sys), (numbers{{"free_slots", 2},
                                   {"steps", 2},
                                   {"store_jobs", 1},
                                   {"stored_chunks", 2}}));
}

TEST(Stats, CountALoadFromItsLookupToItsEnd) {
  auto sys = test_system{plain_options(), 4};
  warm(sys, P, {{1, 2}}, 8);
  const auto before = numbers{
    {"free_slots", 2}, {"steps", 2}, {"store_jobs", 1}, {"stored_chunks", 2}};
  EXPECT_EQ(counted(sys), before);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  auto now = before;
  now["tracked_requests"] = 1;
  now["lookups"] = 1;
  now["hit_tokens"] = 8;
  now["held_slots"] = 2;
  now["pinned_slots"] = 2; // A promise pins what it holds.
  EXPECT_EQ(counted(sys), now);
  sys.alloc(R, {{4, 5, 6}}, 8);
  EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
  now.erase("held_slots");
  now["jobs_in_flight"] = 1;
  now["load_jobs"] = 1;
  now["steps"] = 3;
  EXPECT_EQ(counted(sys), now);
  sys.done(1);
  now.erase("pinned_slots");
  now.erase("jobs_in_flight");
  now["loaded_chunks"] = 2;
  EXPECT_EQ(counted(sys), now);
}

TEST(Stats, CountWhatIsDeferredRefusedAndEvicted) {
  auto sys = test_system{plain_options(), 4};
  sys.add(P, 8);
  (void)sys.step({{{P, 8, {{1, 2}}}}, {}});
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), defer);
  EXPECT_EQ(sys.counters().deferrals, 1u);
  EXPECT_EQ(sys.counters().lookups, 1u);
  EXPECT_EQ(sys.counters().hit_tokens, 0u);
  sys.add(Q, 20);
  EXPECT_EQ(sys.step({{{Q, 20, {{3, 4, 5, 6, 7}}}}, {}}),
            "S1{Q#0<-3,Q#1<-4}"); // What is being written does not go.
  EXPECT_EQ(sys.counters().refused_stores, 1u);
  EXPECT_EQ(sys.counters().evicted_chunks, 0u);
  sys.done({0, 1});
  EXPECT_EQ(sys.step(), "S2{Q#2<-5,Q#3<-6}");
  EXPECT_EQ(sys.counters().refused_stores, 2u);
  EXPECT_EQ(sys.counters().evicted_chunks, 2u);
  EXPECT_EQ(sys.counters().steps, 3u);
}

TEST(Stats, CountFailuresFlushesAndResets) {
  auto sys = test_system{plain_options(), 4};
  sys.add(P, 8);
  (void)sys.step({{{P, 8, {{1, 2}}}}, {}});
  sys.fail(0);
  EXPECT_EQ(sys.counters().failed_jobs, 1u);
  EXPECT_EQ(sys.counters().stored_chunks, 0u);
  EXPECT_EQ(sys.step({{{P, 0, {}}}, {}}), "S1{P#0<-1,P#1<-2}");
  (void)sys.step({{}, {P}});
  EXPECT_EQ(sys.counters().flushed_jobs, 1u);
  (void)sys.reset();
  (void)sys.reset();
  EXPECT_EQ(sys.counters().resets, 2u);
  EXPECT_EQ(sys.counters().quarantined_slots, 2u);
  sys.done(1);
  EXPECT_EQ(sys.counters().quarantined_slots, 0u);
  EXPECT_EQ(sys.counters().failed_jobs, 1u);
}

TEST(Stats, CountAFlushOnceTheRanksAreToldOfIt) {
  auto opts = plain_options();
  opts.idle_delay = 5ms;
  auto sys = test_system{opts};
  run_to_the_end(sys);
  sys.done(0);
  sys.add(Q, 4);
  sys.alloc(Q, {{2}}, 0); // The block of R's tail.
  sys.pass(5ms);          // The tail is planned without a step.
  EXPECT_THAT(sys.jobs(), ElementsAre(1u));
  EXPECT_EQ(sys.counters().flushed_jobs, 0u);
  EXPECT_EQ(sys.step(), "flush{1}");
  EXPECT_EQ(sys.counters().flushed_jobs, 1u);
}

TEST(Stats, CountNoChunksOfALoadThatDidNotStart) {
  auto sys = test_system{{with_ranks(2), {8, 8}}};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  sys.kill_rank(1);
  sys.alloc(R, {{4, 5, 6}}, 8);
  EXPECT_EQ(sys.counters().failed_jobs, 1u);
  EXPECT_EQ(sys.counters().loaded_chunks, 0u);
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
}

TEST(Stats, CountSlidingBlocks) {
  auto sys = test_system{full_and_sliding(8), 16};
  sys.add(P, 8);
  (void)sys.step({{{P, 8, {{1, 2}, {3, 4}}}}, {}});
  EXPECT_EQ(sys.counters().sliding_entries, 2u);
  (void)sys.finish(P, finish_reason::stop);
  (void)sys.step();
  sys.done(sys.jobs());
  EXPECT_EQ(sys.counters().sliding_entries, 0u);
}

} // namespace
} // namespace kvtide::test
