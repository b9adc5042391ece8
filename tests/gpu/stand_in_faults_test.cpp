// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/cuda_stand_in/fixture.hpp"

#include <atomic>
#include <thread>

namespace kvtide::stand_in {
namespace {

struct stand_in_faults : machine_test {};

/// CUDA Runtime API, cudaGetDeviceCount: no device and an old driver are
/// errors, which stay behind as the last one.
TEST_F(stand_in_faults, WithoutDevicesTheCountFailsAndLeavesItsError) {
  for (const auto code : {cudaErrorNoDevice, cudaErrorInsufficientDriver}) {
    auto wanted = manual();
    wanted.devices = 0;
    wanted.without_devices = code;
    start(wanted);
    int count = -1;
    EXPECT_EQ(cudaGetDeviceCount(&count), code);
    EXPECT_EQ(count, 0);
    EXPECT_EQ(cudaPeekAtLastError(), code);
    EXPECT_EQ(cudaGetLastError(), code);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 64), code);
  }
}

TEST_F(stand_in_faults, TheNthCallFailsOnce) {
  const auto stream = make_stream();
  const auto event = make_event();
  fail_call("cudaEventRecord", 2, cudaErrorLaunchOutOfResources);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorLaunchOutOfResources);
  EXPECT_EQ(pending(), 1u);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchOutOfResources);
}

/// CUDA Runtime API, error codes: an illegal address and its kind leave nothing
/// usable; each further call returns the same, giving back included.
TEST_F(stand_in_faults, AfterAStickyErrorAllCallsReturnIt) {
  auto* device = make_device_bytes(64);
  auto* host = make_host_bytes(64, 0);
  const auto stream = make_stream();
  const auto event = make_event();
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  fail_when_run({device + 10, 1});
  copy(host, device, 64, stream);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorIllegalAddress);
  // Even of what was complete before.
  EXPECT_EQ(cudaEventQuery(event), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaEventDestroy(event), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaFree(device), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaFreeHost(host), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  // What needs no context still answers.
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorIllegalAddress),
               "cudaErrorIllegalAddress");
  EXPECT_TRUE(leaks().empty());
}

TEST_F(stand_in_faults, AStickyErrorIsOfOneDeviceUnlessAllFallTogether) {
  for (const bool together : {false, true}) {
    auto wanted = manual();
    wanted.devices = 2;
    wanted.devices_fall_together = together;
    start(wanted);
    const auto stream = make_stream();
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    const auto other = make_stream();
    lose_context(0, cudaErrorECCUncorrectable);
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorECCUncorrectable);
    EXPECT_EQ(cudaStreamQuery(other),
              together ? cudaErrorECCUncorrectable : cudaSuccess);
  }
}

TEST_F(stand_in_faults, ACallThatFailsMayLoseTheContext) {
  const auto stream = make_stream();
  fail_call("cudaStreamQuery", 1, cudaErrorLaunchFailure, true);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorLaunchFailure);
}

TEST_F(stand_in_faults, ACopyThatHangsIsTornUntilItIsReleased) {
  auto* device = make_device_bytes(64);
  auto* host = make_host_bytes(64, 5);
  const auto stream = make_stream();
  hang({device + 63, 1});
  copy(device, host, 64, stream);
  run_all();
  EXPECT_EQ(count_of(device, 64, 5), 32u);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  release_hanging();
  run_all();
  EXPECT_EQ(count_of(device, 64, 5), 64u);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
}

/// A wait that began before the context was lost ends with its error.
TEST_F(stand_in_faults, AWaitEndsWhenTheContextIsLost) {
  start();
  auto* device = make_device_bytes(64);
  const auto stream = make_stream();
  hang({device, 64});
  EXPECT_EQ(cudaMemsetAsync(device, 5, 64, stream), cudaSuccess);
  std::atomic<bool> begun = false;
  std::thread waiting{[&] {
    begun = true;
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchTimeout);
  }};
  while (!begun)
    std::this_thread::yield();
  lose_context(0, cudaErrorLaunchTimeout);
  waiting.join();
}

/// CUDA Runtime API, cudaGetLastError: of the calling thread.
TEST_F(stand_in_faults, TheLastErrorIsTheThreads) {
  EXPECT_EQ(cudaFree(make_device_bytes(64) + 1), cudaErrorInvalidValue);
  expect_refusal("not the start");
  std::thread{[] { EXPECT_EQ(cudaGetLastError(), cudaSuccess); }}.join();
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

} // namespace
} // namespace kvtide::stand_in
