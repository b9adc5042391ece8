// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the real clock adds to the contract of `copy_engine`.

#include "gpu/host_copy_engine.hpp"
#include "tests/gpu/host_rigs.hpp"
#include "tests/gpu/test_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace kvtide::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using clock = std::chrono::steady_clock;

constexpr nanoseconds_t ms = 1'000'000;

class host_copy_engine : public ::testing::Test {
protected:
  void make_rig(host_engine_config config = {}) {
    rig = std::make_unique<real_rig>(std::move(config));
  }

  /// How long it takes until that many jobs were reported.
  nanoseconds_t time_to_run(std::size_t jobs) {
    const auto begin = clock::now();
    rig->run(jobs);
    return std::chrono::nanoseconds{clock::now() - begin}.count();
  }

  test_memory memory{8, 8};
  std::unique_ptr<real_rig> rig;
};

TEST_F(host_copy_engine, RefusesAnIncompleteConfiguration) {
  for (const auto make : {make_host_copy_engine, make_virtual_copy_engine}) {
    EXPECT_EQ(make({}).failure().code, ec::invalid_options);
    host_engine_config config;
    config.wake = [] {};
    EXPECT_TRUE(make(config).ok());
    config.streams_per_direction = 0;
    EXPECT_EQ(make(config).failure().code, ec::invalid_options);
    config.streams_per_direction = 1;
    config.latency = -1;
    EXPECT_EQ(make(config).failure().code, ec::invalid_options);
  }
}

TEST_F(host_copy_engine, LatencyAndBandwidthAreLowerBounds) {
  host_engine_config config;
  config.latency = 10 * ms;
  config.bytes_per_second = 6'400; // One unit in 10 ms.
  make_rig(config);
  rig->submit(memory.store(0, 1, 1));
  rig->submit(memory.store(1, 2, 2));
  EXPECT_GE(time_to_run(2), 40 * ms);
}

TEST_F(host_copy_engine, StreamsOfADirectionRunSideBySide) {
  host_engine_config config;
  config.latency = 10'000 * ms;
  config.streams_per_direction = 2;
  config.fault = [](job_id, job_kind) { return copy_fault{}; };
  make_rig(config);
  memory.fill_block(1, 1);
  rig->submit(memory.store(0, 1, 1));
  rig->submit(memory.store(1, 1, 2));
  rig->submit(memory.store(2, 1, 3));
  rig->run_a_little();
  EXPECT_EQ(rig->engine().in_flight(), 3u);
  // Neither the long copies nor the queue keep the destructor.
  const auto begin = clock::now();
  rig->destroy_engine();
  EXPECT_LT(clock::now() - begin, std::chrono::seconds{5});
  EXPECT_EQ(memory.slot_content(3), 0) << "its stream was busy";
}

TEST_F(host_copy_engine, ADelayedJobIsReportedInTheEnd) {
  host_engine_config config;
  config.fault = [](job_id, job_kind) {
    return copy_fault{fault_kind::delay, 0, 20 * ms};
  };
  make_rig(config);
  rig->submit(memory.store(0, 1, 1));
  EXPECT_GE(time_to_run(1), 20 * ms);
  EXPECT_EQ(rig->done[0].result, copy_result::done);
}

TEST_F(host_copy_engine, AHangBlocksItsStreamButNotTheDestructor) {
  host_engine_config config;
  config.fault = [](job_id id, job_kind) {
    return id == 0 ? copy_fault{fault_kind::hang, 0, 0} : copy_fault{};
  };
  make_rig(config);
  rig->submit(memory.store(0, 1, 1));
  rig->submit(memory.store(1, 2, 2));
  rig->submit(memory.load(2, 3, 3));
  rig->run(1);
  rig->run_a_little();
  EXPECT_THAT(rig->order(), ElementsAre(2));
  rig->destroy_engine();
}

/// G2: waiting for an event that nobody made would wait for nothing.
TEST_F(host_copy_engine, AJobThatNamesAnUnknownEventFails) {
  make_rig();
  memory.fill_block(1, 1);
  auto job = memory.store(0, 1, 1);
  job.after_events.push_back({(std::uint64_t{9} << 32) | 1});
  rig->submit(job);
  rig->run(1);
  EXPECT_EQ(rig->done[0].result, copy_result::failed);
  EXPECT_EQ(rig->done[0].first_failed_row, 0u);
  EXPECT_THAT(rig->done[0].text, HasSubstr("never created"));
  EXPECT_EQ(memory.slot_content(1), 0);
}

TEST_F(host_copy_engine, EventsMayBeCompletedByAnyThread) {
  make_rig();
  const auto event = rig->begin_compute();
  auto job = memory.store(0, 1, 1);
  job.after_events.push_back(event);
  rig->submit(job);
  std::thread compute{[&] {
    memory.fill_block(1, 7);
    rig->events().complete(event.handle);
  }};
  rig->run(1);
  EXPECT_EQ(memory.slot_content(1), 7);
  compute.join();
}

TEST_F(host_copy_engine, AFenceIsReportedOnceAndNotBeforeItsJobs) {
  make_rig();
  for (job_id id = 0; id < 200; id += 2) {
    const auto event = rig->begin_compute();
    auto job = memory.store(id, 1, 1);
    job.after_events.push_back(event);
    rig->submit(job);
    rig->submit(memory.load(id + 1, 1, 2));
    const auto barrier = rig->engine().make_fence(id, {id, id + 1});
    ASSERT_FALSE(barrier.has_value());
    rig->events().complete(event.handle);
    const auto deadline = clock::now() + engine_rig::patience;
    while (!rig->open(barrier, id)) {
      ASSERT_LT(clock::now(), deadline) << "fence " << id << " never opens";
      std::this_thread::yield();
    }
    EXPECT_TRUE(rig->reported(id));
    EXPECT_TRUE(rig->reported(id + 1));
  }
  EXPECT_EQ(rig->fences.size(), 100u);
}

TEST_F(host_copy_engine, TheVirtualClockHasNoMeaning) {
  make_rig();
  EXPECT_EQ(rig->engine().next_due(), never);
  rig->engine().advance(100);
  EXPECT_TRUE(rig->engine().advanced());
  rig->submit(memory.store(0, 1, 1));
  EXPECT_TRUE(rig->engine().advanced());
  EXPECT_EQ(rig->engine().next_due(), never);
  rig->run(1);
  EXPECT_EQ(rig->done[0].due, 0);
}

} // namespace
} // namespace kvtide::gpu
