// SPDX-License-Identifier: Apache-2.0

/// @file
/// How the CUDA engine begins and ends. `cuda_*_test.cpp` beside this file have
/// its rules, `copy_engine_test.cpp` what it shares with other engines.

#include "gpu/cuda/calibration.hpp"
#include "gpu/cuda/cuda_copy_engine.hpp"
#include "tests/gpu/cuda_test.hpp"
#include "tests/gpu/scratch_tree.hpp"

namespace kvtide::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class cuda_engine : public cuda_test {
protected:
  void expect_refused(const std::function<void(cuda_engine_config&)>& how,
                      ec code) {
    const auto made = make_cuda_copy_engine(config(how));
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.failure().code, code);
    EXPECT_NE(made.failure().text, "");
  }
};

TEST_F(cuda_engine, RefusesWhatItCannotDo) {
  expect_refused([](auto& x) { x.wake = {}; }, ec::invalid_options);
  expect_refused([](auto& x) { x.events = {}; }, ec::invalid_options);
  expect_refused([](auto& x) { x.streams_per_direction = 0; },
                 ec::invalid_options);
  expect_refused([](auto& x) { x.kernel_blocks = 0; }, ec::invalid_options);
  expect_refused([](auto& x) { x.bounce_bytes = 0; }, ec::invalid_options);
  expect_refused([](auto& x) { x.device = 1; }, ec::unsupported);
  expect_refused([](auto& x) { x.device = -1; }, ec::unsupported);
}

/// MEM-01: and leaves nothing behind, whichever step of it fails.
TEST_F(cuda_engine, Mem01AStartThatFailsLeavesNothingBehind) {
  make_memory({});
  for (const auto* call :
       {"cudaHostAlloc", "cudaHostGetDevicePointer", "kernel",
        "cudaStreamCreateWithPriority", "cudaDeviceGetStreamPriorityRange"}) {
    SCOPED_TRACE(call);
    stand_in::fail_call(call, 1, cudaErrorMemoryAllocation);
    expect_refused([](auto&) {}, ec::out_of_memory);
    expect_no_error();
    stand_in::fail_call(call, call == std::string{"kernel"} ? 1 : 2,
                        cudaErrorUnknown);
    expect_refused([](auto&) {}, ec::device_failure);
    expect_no_error();
  }
}

TEST_F(cuda_engine, SaysHowLongACopyTook) {
  make();
  submit(store(0, 0));
  settle();
  EXPECT_GT(done[0].copy_ns, 0);
}

TEST_F(cuda_engine, HasNoVirtualClock) {
  make();
  engine->advance(1'000);
  EXPECT_TRUE(engine->advanced());
  EXPECT_EQ(engine->next_due(), never);
}

TEST_F(cuda_engine, JobsAreDealtOutInTurn) {
  make([](cuda_engine_config& x) { x.streams_per_direction = 3; });
  stand_in::run_all();
  for (job_id id = 0; id < 3; ++id)
    submit(store(id, id));
  EXPECT_EQ(stand_in::runnable(), 3u);
  submit(store(3, 3));
  EXPECT_EQ(stand_in::runnable(), 3u);
}

/// A delay is part of the copy, and of nothing else.
TEST_F(cuda_engine, AJobThatIsDelayedIsReported) {
  make([](cuda_engine_config& x) {
    x.fault = [](job_id id, job_kind) {
      return id == 0 ? copy_fault{fault_kind::delay, 0, 1} : copy_fault{};
    };
  });
  submit(store(0, 0));
  settle();
  EXPECT_THAT(reported(), ElementsAre(0));
  EXPECT_EQ(done[0].result, copy_result::done);
}

/// Jobs that are queued never begin; those under way are waited for.
TEST_F(cuda_engine, ItsEndWaitsForWhatIsUnderWay) {
  auto machine = manual_machine();
  machine.threads = 2;
  stand_in::start(machine);
  make([](cuda_engine_config& x) {
    x.slice_bytes = unit;
    x.bytes_in_flight = unit;
  });
  ASSERT_EQ(::cudaDeviceSynchronize(), cudaSuccess);
  for (std::size_t i = 0; i < 8; ++i)
    fill(block(i), 7);
  for (job_id id = 0; id < 4; ++id)
    submit(store(id, 2 * id, 2));
  engine.reset();
  EXPECT_EQ(stand_in::pending(), 0u);
  EXPECT_TRUE(holds(slot(0), 7));
  EXPECT_TRUE(holds(slot(7), 0));
}

TEST_F(cuda_engine, MeasuresOnceForAllStarts) {
  const auto tree = scratch_tree{};
  const auto file = tree.root() + "/cache/copy-rates";
  const auto automatic = [&file](cuda_engine_config& x) {
    x.path = copy_path::automatic;
    x.kernel_below.reset();
    x.slice_bytes = 0;
    x.calibration_file = file;
  };
  make(automatic);
  const auto facts = value_of(facts_of(0));
  const auto kept = read_calibration(
    file, {facts.name, facts.driver_version, facts.runtime_version, 12});
  ASSERT_TRUE(kept.has_value());
  EXPECT_GT(kept->bytes_per_second, 0u);
  const auto before = stand_in::calls("cudaMalloc");
  engine.reset();
  make(automatic);
  EXPECT_EQ(stand_in::calls("cudaMalloc"), before) << "measured again";
  submit(store(0, 0));
  settle();
  EXPECT_EQ(done[0].text, "");
  engine.reset();
  make([&automatic](cuda_engine_config& x) {
    automatic(x);
    x.kernel_blocks = 3; // Another key.
  });
  EXPECT_GT(stand_in::calls("cudaMalloc"), before);
}

TEST_F(cuda_engine, AMeasurementThatFailsIsSaid) {
  const auto measured = [](cuda_engine_config& x) { x.slice_bytes = 0; };
  (void)config(); // Its memory first.
  stand_in::fail_call("cudaMalloc", 1, cudaErrorMemoryAllocation);
  expect_refused(measured, ec::out_of_memory);
  expect_no_error();
}

TEST_F(cuda_engine, NothingIsMeasuredIfAllIsTold) {
  (void)config();
  const auto before = stand_in::calls("cudaMalloc");
  make([](cuda_engine_config& x) {
    x.path = copy_path::automatic;
    x.kernel_below = 1;
    x.slice_bytes = 1;
  });
  EXPECT_EQ(stand_in::calls("cudaMalloc"), before);
}

} // namespace
} // namespace kvtide::gpu
