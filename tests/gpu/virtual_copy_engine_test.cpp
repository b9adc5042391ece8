// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the virtual clock adds to the contract of `copy_engine`.

#include "gpu/host_copy_engine.hpp"
#include "tests/gpu/host_rigs.hpp"
#include "tests/gpu/test_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto unit = test_memory::unit;

/// 10 ns latency and 1 byte per ns: a job of one row lasts 74 ns.
host_engine_config timed() {
  host_engine_config config;
  config.latency = 10;
  config.bytes_per_second = 1'000'000'000;
  return config;
}

class virtual_copy_engine : public ::testing::Test {
protected:
  virtual_copy_engine() {
    make_rig(timed());
    for (std::size_t i = 0; i < 8; ++i) {
      memory.fill_block(i, static_cast<std::uint8_t>(10 + i));
      memory.fill_slot(i, static_cast<std::uint8_t>(20 + i));
    }
  }

  void make_rig(host_engine_config config) {
    rig = std::make_unique<virtual_rig>(std::move(config));
  }

  copy_engine& engine() {
    return rig->engine();
  }

  /// Advances in one go and polls.
  void jump(nanoseconds_t now) {
    engine().advance(now);
    rig->settle();
  }

  std::vector<std::pair<job_id, nanoseconds_t>> times() {
    std::vector<std::pair<job_id, nanoseconds_t>> all;
    for (const auto& outcome : rig->done)
      all.emplace_back(outcome.job, outcome.due);
    return all;
  }

  fence fence_of(job_id id) {
    return *engine().make_fence(0, {id});
  }

  /// A place whose two halves differ.
  static std::array<int, 2> halves(const std::uint8_t* place) {
    return {place[0], place[unit - 1]};
  }

  test_memory memory{8, 8};
  std::unique_ptr<virtual_rig> rig;
};

using pair = std::pair<job_id, nanoseconds_t>;

TEST_F(virtual_copy_engine, AJobIsDueAfterLatencyAndBytes) {
  jump(100);
  rig->submit(memory.job(0, job_kind::store, {1, 2}, {1, 2}));
  EXPECT_EQ(engine().next_due(), 238);
  jump(237);
  EXPECT_THAT(times(), IsEmpty());
  jump(238);
  EXPECT_THAT(times(), ElementsAre(pair{0, 238}));
  EXPECT_EQ(engine().next_due(), never);
}

TEST_F(virtual_copy_engine, AStreamRunsOneJobAtATimeAndDirectionsOverlap) {
  rig->submit(memory.store(0, 1, 1));
  rig->submit(memory.store(1, 2, 2));
  rig->submit(memory.load(2, 3, 3));
  jump(200);
  EXPECT_THAT(times(), ElementsAre(pair{0, 74}, pair{2, 74}, pair{1, 148}));
}

TEST_F(virtual_copy_engine, AStreamThatWasIdleStartsAtSubmit) {
  rig->submit(memory.store(0, 1, 1));
  jump(1'000);
  rig->submit(memory.store(1, 2, 2));
  jump(2'000);
  EXPECT_THAT(times(), ElementsAre(pair{0, 74}, pair{1, 1'074}));
}

TEST_F(virtual_copy_engine, ConstraintsMoveTheStart) {
  auto load = memory.load(0, 1, 1);
  load.after_events = {{50}, {500}, {5}};
  rig->submit(load);
  auto store = memory.store(1, 2, 2);
  store.after = {0};
  rig->submit(store);
  rig->submit(memory.load(2, 2, 3)); // Its slot is written by job 1.
  jump(1'000);
  EXPECT_THAT(times(), ElementsAre(pair{0, 574}, pair{1, 648}, pair{2, 722}));
}

TEST_F(virtual_copy_engine, EqualTimesAreAnnouncedByJobId) {
  rig->submit(memory.store(8, 1, 1));
  rig->submit(memory.load(3, 2, 2));
  jump(74);
  EXPECT_THAT(rig->order(), ElementsAre(3, 8));
}

/// Even where the copies themselves have to be made the other way round.
TEST_F(virtual_copy_engine, EqualTimesAreCopiedInTheOrderOfTheirConstraints) {
  make_rig({});
  rig->submit(memory.store(8, 1, 1));
  rig->submit(memory.load(3, 1, 2));
  EXPECT_EQ(engine().next_due(), 0);
  jump(0);
  EXPECT_THAT(times(), ElementsAre(pair{3, 0}, pair{8, 0}));
  EXPECT_EQ(memory.slot_content(1), 11);
  EXPECT_EQ(memory.block_content(2), 11);
}

/// Otherwise it would depend on the threads which of two is announced first.
TEST_F(virtual_copy_engine, AJobThatIsDueAtOnceWaitsForTheNextAdvance) {
  make_rig({});
  jump(5);
  rig->submit(memory.store(7, 1, 1));
  rig->settle();
  rig->submit(memory.load(6, 2, 2));
  rig->settle();
  EXPECT_THAT(times(), IsEmpty());
  EXPECT_EQ(fence_of(7).handle, 5u);
  jump(5);
  EXPECT_THAT(times(), ElementsAre(pair{6, 5}, pair{7, 5}));
}

TEST_F(virtual_copy_engine, FencesNameTheLastMoment) {
  rig->submit(memory.store(0, 1, 1));
  rig->submit(memory.store(1, 2, 2));
  rig->submit(memory.load(2, 3, 3));
  const auto all = engine().make_fence(9, {0, 1, 2, 55});
  EXPECT_EQ(all->kind, fence::kind_t::event);
  EXPECT_EQ(all->handle, 148u);
  EXPECT_EQ(engine().make_fence(9, {2})->handle, 74u);
  jump(74);
  EXPECT_EQ(fence_of(0).kind, fence::kind_t::none);
  EXPECT_EQ(fence_of(1).handle, 148u);
  jump(148);
  EXPECT_EQ(fence_of(1).kind, fence::kind_t::none);
  EXPECT_THAT(rig->fences, IsEmpty());
}

// -- two halves
// ----------------------------------------------------------------

TEST_F(virtual_copy_engine, CopiesTheFirstHalfAtOnceAndTheRestWhenDue) {
  rig->submit(memory.store(0, 1, 1));
  rig->settle();
  EXPECT_EQ(halves(memory.slot(1)), (std::array{11, 21}));
  jump(73);
  EXPECT_EQ(halves(memory.slot(1)), (std::array{11, 21}));
  jump(74);
  EXPECT_EQ(memory.slot_content(1), 11);
}

TEST_F(virtual_copy_engine, CopiesNothingBeforeTheStart) {
  auto job = memory.store(0, 1, 1);
  job.after_events = {{100}};
  rig->submit(job);
  jump(99);
  EXPECT_EQ(memory.slot_content(1), 21);
  EXPECT_EQ(engine().next_due(), 100);
  jump(100);
  EXPECT_EQ(halves(memory.slot(1)), (std::array{11, 21}));
}

/// S5: compute that does not wait for the flush of what it overwrites.
TEST_F(virtual_copy_engine, S5AMissingFenceShowsInTheStoredBytes) {
  rig->submit(memory.store(0, 1, 1));
  jump(40);
  memory.fill_block(1, 99);
  jump(74);
  EXPECT_EQ(halves(memory.slot(1)), (std::array{11, 99}));
}

/// S6: a store that does not wait for the compute that writes its source.
TEST_F(virtual_copy_engine, S6AMissingComputeEventShowsInTheStoredBytes) {
  rig->submit(memory.store(0, 1, 1));
  rig->settle();
  jump(49);
  memory.fill_block(1, 99); // The compute ends at 50.
  jump(50);
  jump(74);
  EXPECT_EQ(halves(memory.slot(1)), (std::array{11, 99}));
}

/// S7: compute that reads blocks before their load was reported.
TEST_F(virtual_copy_engine, S7AnEarlyReadShowsInTheLoadedBytes) {
  rig->submit(memory.load(0, 1, 1));
  jump(73);
  EXPECT_EQ(halves(memory.block(1)), (std::array{21, 11}));
}

TEST_F(virtual_copy_engine, AStoreBehindItsFenceIsWhole) {
  rig->submit(memory.store(0, 1, 1));
  EXPECT_EQ(fence_of(0).handle, 74u); // Compute runs from 74 to 80.
  jump(79);
  memory.fill_block(1, 99);
  jump(80);
  EXPECT_EQ(memory.slot_content(1), 11);
}

// -- faults
// --------------------------------------------------------------------

TEST_F(virtual_copy_engine, ADelayKeepsTheStreamBusy) {
  auto config = timed();
  config.fault = [](job_id id, job_kind) {
    return id == 0 ? copy_fault{fault_kind::delay, 0, 1'000} : copy_fault{};
  };
  make_rig(std::move(config));
  rig->submit(memory.store(0, 1, 1));
  rig->submit(memory.store(1, 2, 2));
  rig->submit(memory.load(2, 3, 3));
  jump(5'000);
  EXPECT_THAT(times(),
              ElementsAre(pair{2, 74}, pair{0, 1'074}, pair{1, 1'148}));
}

TEST_F(virtual_copy_engine, AHangOccupiesOnlyItselfAndWhatIsOrderedBehindIt) {
  auto config = timed();
  config.fault = [](job_id id, job_kind) {
    return id == 0 ? copy_fault{fault_kind::hang, 0, 0} : copy_fault{};
  };
  make_rig(std::move(config));
  rig->submit(memory.store(0, 1, 1));
  rig->submit(memory.store(1, 2, 2));
  rig->submit(memory.load(2, 1, 3));
  EXPECT_EQ(fence_of(0).handle, static_cast<std::uint64_t>(never));
  EXPECT_EQ(fence_of(2).handle, static_cast<std::uint64_t>(never));
  jump(never - 1);
  EXPECT_THAT(times(), ElementsAre(pair{1, 74}));
  EXPECT_EQ(halves(memory.slot(1)), (std::array{11, 21}));
  EXPECT_EQ(memory.block_content(3), 13);
  EXPECT_EQ(engine().next_due(), never);
  EXPECT_EQ(engine().in_flight(), 2u);
}

TEST_F(virtual_copy_engine, AFailureIsAnnouncedWhenItIsDue) {
  auto config = timed();
  config.fault = [](job_id, job_kind) {
    return copy_fault{fault_kind::fail, 1, 0};
  };
  make_rig(std::move(config));
  rig->submit(memory.job(0, job_kind::store, {1, 2}, {1, 2}));
  jump(137);
  EXPECT_THAT(times(), IsEmpty());
  jump(138);
  EXPECT_THAT(times(), ElementsAre(pair{0, 138}));
  EXPECT_EQ(rig->done[0].first_failed_row, 1u);
  EXPECT_EQ(memory.slot_content(1), 11);
  EXPECT_EQ(memory.slot_content(2), 22);
}

TEST_F(virtual_copy_engine, TimeNeverGoesBack) {
  jump(100);
  jump(50);
  rig->submit(memory.store(0, 1, 1));
  EXPECT_EQ(fence_of(0).handle, 174u);
}

// -- determinism
// ---------------------------------------------------------------

/// What one run of a script shows.
struct trace {
  std::vector<pair> announced;
  std::vector<std::uint64_t> fences;
  std::vector<nanoseconds_t> next;
  test_memory memory{6, 6};
};

/// One script with too few waits on blocks, so that copies and compute collide
/// in simulated time. The owner's own pace is not part of the script: an eager
/// one polls all the time, a lazy one only when it has to.
trace run_script(std::uint32_t seed, bool eager) {
  std::mt19937 random{seed};
  const auto below = [&random](std::uint64_t limit) {
    return static_cast<std::uint64_t>(random() % limit);
  };
  host_engine_config config;
  config.streams_per_direction = static_cast<std::uint32_t>(1 + below(2));
  config.latency = static_cast<nanoseconds_t>(below(3) * 20);
  config.bytes_per_second = below(3) * 500'000'000;
  config.fault = [seed](job_id id, job_kind) {
    switch ((id * 7 + seed) % 13) {
      case 0:
        return copy_fault{fault_kind::fail, 1, 0};
      case 1:
        return copy_fault{fault_kind::delay, 0, 90};
      case 2:
        return id % 5 == 0 ? copy_fault{fault_kind::hang, 0, 0} : copy_fault{};
      default:
        return copy_fault{};
    }
  };
  trace seen;
  for (std::size_t i = 0; i < 6; ++i)
    seen.memory.fill_block(i, static_cast<std::uint8_t>(i + 1));
  virtual_rig rig{config};
  auto& engine = rig.engine();
  nanoseconds_t now = 0;
  const auto breathe = [&] {
    if (eager)
      engine.poll(rig.done, rig.fences);
  };
  for (job_id next = 0; next < 40;) {
    const auto batch = 1 + below(4);
    for (std::uint64_t i = 0; i < batch; ++i) {
      // Ids do not follow the order of submission.
      const auto id = (next++) ^ job_id { 3 };
      const auto kind = below(2) == 0 ? job_kind::store : job_kind::load;
      std::vector<std::size_t> blocks;
      std::vector<slot_id> slots;
      for (std::uint64_t k = 0; k < 1 + id % 3; ++k) {
        blocks.push_back(static_cast<std::size_t>(below(6)));
        slots.push_back(static_cast<slot_id>(below(6)));
      }
      auto job = seen.memory.job(id, kind, blocks, slots);
      if (below(3) == 0)
        job.after.push_back(below(40));
      if (below(3) == 0)
        job.after_events.push_back(
          {static_cast<std::uint64_t>(now) + below(100)});
      EXPECT_EQ(engine.submit(std::move(job)), ec::none);
      breathe();
    }
    seen.fences.push_back(
      engine.make_fence(next, {next ^ 3, below(40)})->handle);
    now += static_cast<nanoseconds_t>(below(120));
    engine.advance(now);
    breathe();
    if (below(2) == 0) {
      rig.settle();
      seen.memory.fill_block(static_cast<std::size_t>(below(6)),
                             static_cast<std::uint8_t>(100 + next));
    } else if (eager) {
      rig.settle();
    }
    seen.next.push_back(engine.next_due());
  }
  engine.advance(never - 1);
  rig.settle();
  for (const auto& outcome : rig.done)
    seen.announced.emplace_back(outcome.job, outcome.due);
  return seen;
}

TEST(virtual_copy_engine_seeds, ThreadsAndPollingDecideNothing) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    auto eager = run_script(seed, true);
    auto lazy = run_script(seed, false);
    EXPECT_EQ(eager.announced, lazy.announced) << "seed " << seed;
    EXPECT_EQ(eager.next, lazy.next) << "seed " << seed;
    EXPECT_TRUE(eager.memory.bytes() == lazy.memory.bytes()) << "seed " << seed;
    EXPECT_TRUE(std::is_sorted(
      eager.announced.begin(), eager.announced.end(),
      [](const pair& x, const pair& y) { return x.second < y.second; }))
      << "seed " << seed;
    if (::testing::Test::HasFailure())
      return;
  }
}

TEST(virtual_copy_engine_seeds, RunsOfTheSameScriptAreEqualInEveryDetail) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    auto first = run_script(seed, true);
    auto again = run_script(seed, true);
    EXPECT_EQ(first.announced, again.announced) << "seed " << seed;
    EXPECT_EQ(first.fences, again.fences) << "seed " << seed;
    EXPECT_EQ(first.next, again.next) << "seed " << seed;
    EXPECT_TRUE(first.memory.bytes() == again.memory.bytes())
      << "seed " << seed;
    if (::testing::Test::HasFailure())
      return;
  }
}

} // namespace
} // namespace kvtide::gpu
