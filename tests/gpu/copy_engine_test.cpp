// SPDX-License-Identifier: Apache-2.0

/// @file
/// The contract of `copy_engine`, for every implementation.

#include "gpu/copy_engine.hpp"
#include "tests/gpu/engine_kinds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class copy_engine_contract : public ::testing::TestWithParam<engine_kind> {
protected:
  void SetUp() override {
    if (const auto why = GetParam().missing(); !why.empty())
      GTEST_SKIP() << why;
    GetParam().start();
    owned_memory.emplace(8, 8, GetParam().make_home);
  }

  void TearDown() override {
    rig.reset();
    owned_memory.reset();
    if (!IsSkipped())
      GetParam().check();
  }

  /// Two streams per direction, so that stream order hides no missing wait.
  void make_rig(host_engine_config config = two_streams()) {
    rig = GetParam().make(std::move(config), memory().home());
  }

  static host_engine_config two_streams() {
    host_engine_config config;
    config.streams_per_direction = 2;
    return config;
  }

  static host_engine_config
  with_fault(std::function<copy_fault(job_id, job_kind)> fault) {
    auto config = two_streams();
    config.fault = std::move(fault);
    return config;
  }

  /// A store that stays in flight until the event is complete.
  copy_job held_store(job_id id, std::size_t from, slot_id to,
                      compute_event event) {
    auto job = memory().store(id, from, to);
    job.after_events.push_back(event);
    return job;
  }

  test_memory& memory() {
    return *owned_memory;
  }

  std::optional<test_memory> owned_memory;
  std::unique_ptr<engine_rig> rig;
};

TEST_P(copy_engine_contract, CopiesAllBytesAndReportsOnce) {
  make_rig();
  memory().fill_block(1, 11);
  memory().fill_block(2, 12);
  rig->submit(memory().job(0, job_kind::store, {1, 2}, {5, 3}));
  EXPECT_EQ(rig->engine().in_flight(), 1u);
  rig->run(1);
  EXPECT_EQ(memory().slot_content(5), 11);
  EXPECT_EQ(memory().slot_content(3), 12);
  EXPECT_EQ(rig->engine().in_flight(), 0u);
  rig->submit(memory().load(1, 3, 7));
  rig->run(2);
  rig->run_a_little();
  EXPECT_EQ(memory().block_content(7), 12);
  EXPECT_THAT(rig->order(), ElementsAre(0, 1));
  for (const auto& outcome : rig->done) {
    EXPECT_EQ(outcome.result, copy_result::done);
    EXPECT_EQ(outcome.text, "");
  }
}

TEST_P(copy_engine_contract, SaysHowManyBytesAJobCopied) {
  make_rig(with_fault([](job_id id, job_kind) {
    return id == 1 ? copy_fault{fault_kind::fail, 2, 0} : copy_fault{};
  }));
  rig->submit(memory().job(0, job_kind::store, {1, 2}, {5, 3}));
  rig->submit(memory().job(1, job_kind::store, {1, 2, 3}, {0, 1, 2}));
  rig->run(2);
  EXPECT_EQ(rig->outcome_of(0)->bytes, 2 * test_memory::unit);
  EXPECT_EQ(rig->outcome_of(1)->bytes, 2 * test_memory::unit);
  for (const auto& outcome : rig->done)
    EXPECT_GE(outcome.copy_ns, 0);
}

TEST_P(copy_engine_contract, ReportsAJobWithoutFragments) {
  make_rig();
  copy_job job;
  job.id = 3;
  rig->submit(job);
  rig->run(1);
  EXPECT_EQ(rig->done[0].result, copy_result::done);
}

TEST_P(copy_engine_contract, RefusesAnIdThatIsInFlight) {
  make_rig();
  const auto event = rig->begin_compute();
  rig->submit(held_store(4, 1, 1, event));
  EXPECT_EQ(rig->engine().submit(memory().store(4, 2, 2)),
            ec::invalid_argument);
  rig->end_compute(event);
  rig->run(1);
  rig->run_a_little();
  EXPECT_THAT(rig->order(), ElementsAre(4));
}

/// S6, ORD-01: a copy reads what the compute before it has written.
TEST_P(copy_engine_contract, Ord01ACopyStartsAfterItsComputeEvents) {
  make_rig();
  for (job_id id = 0; id < 20; ++id) {
    memory().fill_block(1, 0);
    const auto first = rig->begin_compute();
    const auto second = rig->begin_compute();
    auto job = held_store(id, 1, 1, first);
    job.after_events.push_back(second);
    rig->submit(job);
    rig->end_compute(first);
    rig->run_a_little();
    EXPECT_FALSE(rig->reported(id));
    const auto value = static_cast<std::uint8_t>(id + 1);
    rig->end_compute(second, [&] { memory().fill_block(1, value); });
    rig->run(id + 1);
    EXPECT_EQ(memory().slot_content(1), value);
  }
}

/// ORD-02: a job that was submitted steps later still waits for the event, as
/// the device lags behind. Nothing that the host does replaces that.
TEST_P(copy_engine_contract, Ord02ALateSubmitIsNoOrderOnTheDevice) {
  make_rig();
  for (job_id id = 0; id < 20; ++id) {
    memory().fill_block(1, 0);
    // Two steps are enqueued and neither has run: the first writes block 1, the
    // second still reads block 2.
    const auto first = rig->begin_compute();
    const auto second = rig->begin_compute();
    memory().fill_block(2, 99);
    memory().fill_slot(3, 33);
    rig->submit(held_store(2 * id, 1, 1, second));
    auto load = memory().load(2 * id + 1, 3, 2);
    load.after_events.push_back(second);
    rig->submit(load);
    const auto value = static_cast<std::uint8_t>(id + 1);
    rig->end_compute(first, [&] { memory().fill_block(1, value); });
    rig->end_compute(second, [&] { EXPECT_EQ(memory().block_content(2), 99); });
    rig->run(2 * id + 2);
    EXPECT_EQ(memory().slot_content(1), value);
    EXPECT_EQ(memory().block_content(2), 33);
  }
}

TEST_P(copy_engine_contract, ACompleteEventHoldsNothing) {
  make_rig();
  const auto event = rig->begin_compute();
  rig->end_compute(event);
  rig->submit(held_store(0, 1, 1, event));
  rig->run(1);
}

/// S8: a store waits for all earlier copies on its slot.
TEST_P(copy_engine_contract, S8AStoreWaitsForTheEarlierStoreOnItsSlot) {
  make_rig();
  memory().fill_block(1, 11);
  memory().fill_block(2, 12);
  const auto event = rig->begin_compute();
  rig->submit(held_store(0, 1, 1, event));
  rig->submit(memory().store(1, 2, 1));
  rig->run_a_little();
  EXPECT_THAT(rig->order(), IsEmpty());
  rig->end_compute(event);
  rig->run(2);
  EXPECT_EQ(memory().slot_content(1), 12);
}

TEST_P(copy_engine_contract, S8ALoadWaitsForTheEarlierStoreOnItsSlot) {
  make_rig();
  memory().fill_block(1, 11);
  const auto event = rig->begin_compute();
  rig->submit(held_store(0, 1, 1, event));
  rig->submit(memory().load(1, 1, 2));
  rig->run_a_little();
  EXPECT_THAT(rig->order(), IsEmpty());
  rig->end_compute(event);
  rig->run(2);
  EXPECT_EQ(memory().block_content(2), 11);
}

TEST_P(copy_engine_contract, S8AStoreWaitsForTheEarlierLoadsOnItsSlot) {
  make_rig();
  memory().fill_slot(1, 21);
  memory().fill_block(1, 11);
  const auto event = rig->begin_compute();
  auto load = memory().load(0, 1, 2);
  load.after_events.push_back(event);
  rig->submit(load);
  rig->submit(memory().load(1, 1, 3));
  rig->submit(memory().store(2, 1, 1));
  rig->run(1);
  rig->run_a_little();
  EXPECT_THAT(rig->order(), ElementsAre(1)) << "loads do not wait for loads";
  rig->end_compute(event);
  rig->run(3);
  EXPECT_EQ(memory().block_content(2), 21);
  EXPECT_EQ(memory().block_content(3), 21);
  EXPECT_EQ(memory().slot_content(1), 11);
}

/// The order of submission counts, not the order of the ids.
TEST_P(copy_engine_contract, S8SlotOrderIsTheOrderOfSubmission) {
  make_rig();
  memory().fill_block(1, 11);
  rig->submit(memory().store(9, 1, 1));
  rig->submit(memory().load(5, 1, 2));
  rig->run(2);
  EXPECT_EQ(memory().block_content(2), 11);
}

/// S5: a load behind flushed stores.
TEST_P(copy_engine_contract, S5AJobStartsAfterTheJobsThatItNames) {
  make_rig();
  memory().fill_block(1, 11);
  memory().fill_slot(2, 22);
  const auto event = rig->begin_compute();
  rig->submit(held_store(0, 1, 1, event));
  auto load = memory().load(1, 2, 1); // Overwrites what the store reads.
  load.after = {0};
  rig->submit(load);
  rig->run_a_little();
  EXPECT_THAT(rig->order(), IsEmpty());
  rig->end_compute(event);
  rig->run(2);
  EXPECT_EQ(memory().slot_content(1), 11);
  EXPECT_EQ(memory().block_content(1), 22);
}

TEST_P(copy_engine_contract, IdsThatAreNotInFlightHoldNothing) {
  make_rig();
  rig->submit(memory().store(0, 1, 1));
  rig->run(1);
  auto job = memory().store(1, 1, 2);
  job.after = {0, 77, 1};
  rig->submit(job);
  rig->run(2);
}

/// S5: a fence, like `after`, also ends when its job fails.
TEST_P(copy_engine_contract, S5AFailedJobHasEnded) {
  make_rig(with_fault([](job_id id, job_kind) {
    return id == 0 ? copy_fault{fault_kind::fail, 0, 0} : copy_fault{};
  }));
  const auto event = rig->begin_compute();
  rig->submit(held_store(0, 1, 1, event));
  auto job = memory().store(1, 2, 2);
  job.after = {0};
  rig->submit(job);
  const auto barrier = rig->make_fence(7, {0, 1});
  rig->run_a_little();
  EXPECT_FALSE(rig->open(barrier, 7));
  rig->end_compute(event);
  rig->run(2);
  EXPECT_TRUE(rig->opens(barrier, 7));
  EXPECT_EQ(rig->outcome_of(0)->result, copy_result::failed);
  EXPECT_EQ(rig->outcome_of(1)->result, copy_result::done);
}

TEST_P(copy_engine_contract, AFenceOverNothingIsNone) {
  make_rig();
  EXPECT_EQ(rig->make_fence(1, {})->kind, fence::kind_t::none);
  EXPECT_EQ(rig->make_fence(2, {5, 6})->kind, fence::kind_t::none);
  rig->submit(memory().store(0, 1, 1));
  rig->run(1);
  EXPECT_EQ(rig->make_fence(3, {0, 9})->kind, fence::kind_t::none);
  rig->run_a_little();
  EXPECT_THAT(rig->fences, IsEmpty());
}

TEST_P(copy_engine_contract, AFenceOpensWhenTheLastOfItsJobsHasEnded) {
  make_rig();
  const auto first = rig->begin_compute();
  const auto second = rig->begin_compute();
  rig->submit(held_store(0, 1, 1, first));
  rig->submit(held_store(1, 2, 2, second));
  rig->submit(memory().store(2, 3, 3));
  const auto both = rig->make_fence(4, {0, 1, 99, 1});
  const auto early = rig->make_fence(5, {0});
  rig->run_a_little();
  EXPECT_FALSE(rig->open(both, 4));
  EXPECT_FALSE(rig->open(early, 5));
  rig->end_compute(first);
  rig->run(2);
  rig->run_a_little();
  EXPECT_FALSE(rig->open(both, 4));
  EXPECT_TRUE(rig->opens(early, 5));
  rig->end_compute(second);
  rig->run(3);
  EXPECT_TRUE(rig->opens(both, 4));
}

/// FAI-01: rows before the failed one are complete, and it is said which.
TEST_P(copy_engine_contract, Fai01AFailedJobNamesItsFirstFailedRow) {
  make_rig(with_fault([](job_id, job_kind) {
    return copy_fault{fault_kind::fail, 2, 0};
  }));
  for (std::size_t i = 0; i < 4; ++i)
    memory().fill_block(i, static_cast<std::uint8_t>(i + 1));
  rig->submit(memory().job(0, job_kind::store, {0, 1, 2, 3}, {4, 5, 6, 7}));
  rig->run(1);
  EXPECT_EQ(rig->done[0].result, copy_result::failed);
  EXPECT_EQ(rig->done[0].first_failed_row, 2u);
  EXPECT_NE(rig->done[0].text, "");
  EXPECT_EQ(memory().slot_content(4), 1);
  EXPECT_EQ(memory().slot_content(5), 2);
  EXPECT_EQ(memory().slot_content(6), 0);
  EXPECT_EQ(memory().slot_content(7), 0);
}

/// FAI-03: every job has exactly one report.
TEST_P(copy_engine_contract, Fai03EveryJobIsReportedWhateverFails) {
  make_rig(with_fault([](job_id id, job_kind) {
    return id % 10 == 3 ? copy_fault{fault_kind::fail, 0, 0} : copy_fault{};
  }));
  for (job_id id = 0; id < 100; ++id)
    rig->submit(memory().store(id, id % 8, static_cast<slot_id>(id % 7)));
  rig->run(100);
  rig->run_a_little();
  const auto ids = rig->order();
  EXPECT_EQ(ids.size(), 100u);
  EXPECT_EQ(std::set<job_id>(ids.begin(), ids.end()).size(), 100u);
  EXPECT_EQ(std::count_if(rig->done.begin(), rig->done.end(),
                          [](const completion& x) {
                            return x.result == copy_result::failed;
                          }),
            10);
}

TEST_P(copy_engine_contract, AJobThatHangsLeavesOtherStreamsAlone) {
  make_rig(with_fault([](job_id id, job_kind) {
    return id == 0 ? copy_fault{fault_kind::hang, 0, 0} : copy_fault{};
  }));
  memory().fill_slot(5, 25);
  rig->submit(memory().store(0, 1, 1));
  rig->submit(memory().store(1, 2, 2)); // The other stream of this direction.
  rig->submit(memory().load(2, 5, 3));
  auto behind = memory().load(3, 1, 4);
  rig->submit(behind);
  const auto barrier = rig->make_fence(1, {0});
  rig->run(2);
  rig->run_a_little();
  EXPECT_FALSE(rig->reported(0));
  EXPECT_FALSE(rig->reported(3)) << "its slot may still be written";
  EXPECT_TRUE(rig->reported(1));
  EXPECT_TRUE(rig->reported(2));
  EXPECT_FALSE(rig->open(barrier, 1));
  EXPECT_EQ(rig->engine().in_flight(), 2u);
}

TEST_P(copy_engine_contract, CanBeDestroyedWithJobsInFlight) {
  auto config = with_fault([](job_id id, job_kind) {
    return id == 5 ? copy_fault{fault_kind::hang, 0, 0} : copy_fault{};
  });
  config.latency = 1'000'000;
  make_rig(std::move(config));
  const auto event = rig->begin_compute();
  rig->submit(held_store(0, 1, 1, event));
  for (job_id id = 1; id < 50; ++id) {
    // Stores read what no load writes, and loads of a block follow one another:
    // order on blocks is the owner's.
    auto job = id % 2 == 0 ? memory().store(id, id % 4, 2)
                           : memory().load(id, 3, 4 + id / 2 % 4);
    if (id % 2 == 1 && id > 8)
      job.after = {id - 8};
    rig->submit(job);
  }
  rig->destroy_engine();
}

// -- many jobs against a sequential model
// --------------------------------------

/// Adds what the engine's owner is to add: order on blocks.
class block_order {
public:
  void add(copy_job& job, const std::vector<std::size_t>& blocks) {
    for (const auto block : blocks) {
      auto& entry = users_[block];
      job.after.insert(job.after.end(), entry.writers.begin(),
                       entry.writers.end());
      if (job.kind == job_kind::load) {
        job.after.insert(job.after.end(), entry.readers.begin(),
                         entry.readers.end());
        entry = {};
        entry.writers.push_back(job.id);
      } else {
        entry.readers.push_back(job.id);
      }
    }
  }

private:
  struct users {
    std::vector<job_id> writers;
    std::vector<job_id> readers;
  };

  std::map<std::size_t, users> users_;
};

void copy_now(const copy_job& job, std::uint32_t rows) {
  for (const auto& part : job.fragments)
    if (part.row < rows)
      std::memcpy(part.dst, part.src, part.bytes);
}

void run_random_jobs(std::uint32_t seed, const engine_kind& kind) {
  constexpr std::size_t places = 8;
  constexpr job_id jobs = 60;
  std::mt19937 random{seed};
  const auto below = [&random](std::size_t limit) {
    return static_cast<std::size_t>(random() % limit);
  };
  host_engine_config config;
  config.streams_per_direction = static_cast<std::uint32_t>(1 + below(3));
  config.latency = static_cast<nanoseconds_t>(below(2) * 500);
  config.bytes_per_second = below(2) * 100'000'000;
  config.fault = [seed](job_id id, job_kind) {
    return (id + seed) % 11 == 0 ? copy_fault{fault_kind::fail, 1, 0}
                                 : copy_fault{};
  };
  kind.start();
  test_memory memory{places, places, kind.make_home};
  test_memory model{places, places};
  for (std::size_t i = 0; i < places; ++i) {
    const auto value = static_cast<std::uint8_t>(i + 1);
    memory.fill_block(i, value);
    model.fill_block(i, value);
  }
  auto rig = kind.make(config, memory.home());
  block_order order;
  std::vector<compute_event> events;
  for (job_id id = 0; id < jobs; ++id) {
    const auto direction = below(2) == 0 ? job_kind::store : job_kind::load;
    std::vector<std::size_t> blocks(places);
    std::iota(blocks.begin(), blocks.end(), 0u);
    std::shuffle(blocks.begin(), blocks.end(), random);
    std::vector<slot_id> slots(blocks.begin(), blocks.end());
    std::shuffle(slots.begin(), slots.end(), random);
    const auto rows = 1 + below(3);
    blocks.resize(rows);
    slots.resize(rows);
    auto job = memory.job(id, direction, blocks, slots);
    order.add(job, blocks);
    if (below(4) == 0)
      events.push_back(rig->begin_compute());
    if (!events.empty() && below(3) == 0)
      job.after_events.push_back(events.back());
    rig->submit(job);
    copy_now(model.job(id, direction, blocks, slots),
             (id + seed) % 11 == 0 ? 1 : 3);
    if (!events.empty() && below(16) == 0) {
      for (const auto event : events)
        rig->end_compute(event);
      events.clear();
    }
  }
  for (const auto event : events)
    rig->end_compute(event);
  rig->run(jobs);
  EXPECT_TRUE(memory.bytes() == model.bytes()) << "seed " << seed;
}

TEST_P(copy_engine_contract, RandomJobsEqualASequentialModelOnAllSeeds) {
  owned_memory.reset(); // Each seed has a machine and memory of its own.
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    run_random_jobs(seed, GetParam());
    if (HasFailure())
      return;
  }
}

INSTANTIATE_TEST_SUITE_P(engines, copy_engine_contract,
                         ::testing::ValuesIn(engine_kinds()),
                         [](const auto& param) {
                           return std::string{param.param.name};
                         });

} // namespace
} // namespace kvtide::gpu
