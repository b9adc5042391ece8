// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/cuda_stand_in/fixture.hpp"

#include <set>
#include <thread>

namespace kvtide::stand_in {
namespace {

struct stand_in_streams : machine_test {};

void count_call(void* counter) {
  ++*static_cast<int*>(counter);
}

void call_cuda(void* answer) {
  int device = -1;
  *static_cast<cudaError_t*>(answer) = cudaGetDevice(&device);
}

/// CUDA Runtime API, cudaLaunchHostFunc: after the work in front of it, and
/// before the work behind it.
TEST_F(stand_in_streams, AHostFunctionKeepsItsPlaceInTheStream) {
  auto* device = make_device_bytes(64);
  const auto stream = make_stream();
  int calls = 0;
  EXPECT_EQ(cudaMemsetAsync(device, 1, 64, stream), cudaSuccess);
  EXPECT_EQ(cudaLaunchHostFunc(stream, count_call, &calls), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(device, 2, 64, stream), cudaSuccess);
  run(0);
  run(0);
  EXPECT_EQ(calls, 0);
  run(0);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(count_of(device, 64, 1), 64u);
  run_all();
  EXPECT_EQ(count_of(device, 64, 2), 64u);
}

/// CUDA Runtime API, cudaLaunchHostFunc: makes no CUDA calls; they may be
/// refused.
TEST_F(stand_in_streams, AHostFunctionMustNotCallCuda) {
  const auto stream = make_stream();
  auto answer = cudaSuccess;
  EXPECT_EQ(cudaLaunchHostFunc(stream, call_cuda, &answer), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(answer, cudaErrorNotPermitted);
  expect_refusal("cudaGetDevice: called from a host function");
}

/// CUDA Runtime API, cudaLaunchHostFunc: not called after an error of the
/// context, which would be the only way for it to learn of one.
TEST_F(stand_in_streams, AHostFunctionIsNotCalledAfterAnError) {
  auto* device = make_device_bytes(64);
  const auto stream = make_stream();
  const auto other = make_stream();
  int calls = 0;
  fail_when_run({device, 64});
  EXPECT_EQ(cudaMemsetAsync(device, 1, 64, stream), cudaSuccess);
  EXPECT_EQ(cudaLaunchHostFunc(stream, count_call, &calls), cudaSuccess);
  run_all();
  EXPECT_EQ(cudaLaunchHostFunc(other, count_call, &calls),
            cudaErrorIllegalAddress);
  run_all();
  EXPECT_EQ(calls, 0);
}

/// CUDA Runtime API, cudaStreamDestroy: returns at once, and the work is done.
TEST_F(stand_in_streams, ADestroyedStreamFinishesItsWorkAndIsNeverAnother) {
  auto* device = make_device_bytes(64);
  const auto stream = make_stream();
  EXPECT_EQ(cudaMemsetAsync(device, 1, 64, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(count_of(device, 64, 1), 0u);
  for (int i = 0; i < 100; ++i)
    EXPECT_NE(make_stream(), stream);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  expect_refusal("a stream that was destroyed");
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(count_of(device, 64, 1), 64u);
}

/// CUDA Runtime API, stream synchronization behavior: blocking streams and the
/// legacy default stream wait for each other; non-blocking ones do not take
/// part.
TEST_F(stand_in_streams, OnlyBlockingStreamsWaitForTheLegacyStream) {
  auto* device = make_device_bytes(64);
  const auto blocking = make_stream(cudaStreamDefault);
  const auto free_one = make_stream(cudaStreamNonBlocking);
  hang({device, 64});
  EXPECT_EQ(cudaMemsetAsync(device, 1, 64, nullptr), cudaSuccess);
  int calls = 0;
  EXPECT_EQ(cudaLaunchHostFunc(blocking, count_call, &calls), cudaSuccess);
  run_all();
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(cudaLaunchHostFunc(free_one, count_call, &calls), cudaSuccess);
  run_all();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(cudaStreamQuery(free_one), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(blocking), cudaErrorNotReady);
  release_hanging();
  run_all();
  EXPECT_EQ(calls, 2);
}

TEST_F(stand_in_streams, TheLegacyStreamWaitsForBlockingStreams) {
  auto* device = make_device_bytes(64);
  const auto blocking = make_stream(cudaStreamDefault);
  const auto free_one = make_stream(cudaStreamNonBlocking);
  hang({device, 32});
  EXPECT_EQ(cudaMemsetAsync(device, 1, 32, free_one), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(device, 1, 32, blocking), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(cudaStreamLegacy), cudaErrorNotReady);
  int calls = 0;
  EXPECT_EQ(cudaLaunchHostFunc(nullptr, count_call, &calls), cudaSuccess);
  run_all();
  EXPECT_EQ(calls, 0);
  release_hanging();
  run_all();
  EXPECT_EQ(calls, 1);
}

/// CUDA Runtime API, cudaSetDevice: for the calling thread.
TEST_F(stand_in_streams, TheCurrentDeviceIsTheThreads) {
  auto wanted = manual();
  wanted.devices = 2;
  start(wanted);
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  std::thread{[] {
    int device = -1;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 0);
  }}.join();
  int device = -1;
  const auto stream = make_stream();
  EXPECT_EQ(cudaStreamGetDevice(stream, &device), cudaSuccess);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  expect_refusal("no such device");
}

/// CUDA programming guide, multi-device system: copies may use a stream of
/// another device than the current one; launches fail.
TEST_F(stand_in_streams, AKernelNeedsItsStreamsDevice) {
  auto wanted = manual();
  wanted.devices = 2;
  start(wanted);
  const auto stream = make_stream();
  auto* device = make_device_bytes(64);
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(device, 1, 64, stream), cudaSuccess);
  const auto nothing = [] {};
  EXPECT_EQ(enqueue(stream, nothing, nothing, {}),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  expect_refusal("not the current one");
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(enqueue(stream, nothing, nothing, {}), cudaSuccess);
}

/// CUDA programming guide, peer access: without it, a kernel that uses another
/// device's memory has an illegal address. A copy may.
TEST_F(stand_in_streams, AKernelCannotReachAnotherDevicesMemory) {
  auto wanted = manual();
  wanted.devices = 2;
  start(wanted);
  auto* far_away = make_device_bytes(64);
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  auto* near = make_device_bytes(64);
  const auto stream = make_stream();
  copy(far_away, near, 64, stream);
  EXPECT_EQ(enqueue(stream, [] {}, nullptr, {{near, 64}}), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(enqueue(stream, [] { FAIL(); }, nullptr, {{far_away, 64}}),
            cudaSuccess);
  expect_refusal("no device can reach");
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaFree(far_away), cudaSuccess);
}

/// CUDA Runtime API, cudaStreamCreateWithPriority: clamps what is out of range.
TEST_F(stand_in_streams, PrioritiesAreClamped) {
  int least = 9;
  int greatest = 9;
  EXPECT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
  EXPECT_LT(greatest, least);
  cudaStream_t made = nullptr;
  EXPECT_EQ(cudaStreamCreateWithPriority(&made, 0, greatest - 10), cudaSuccess);
  EXPECT_EQ(cudaStreamCreateWithPriority(&made, 2, 0), cudaErrorInvalidValue);
  expect_refusal("flags");
}

TEST_F(stand_in_streams, LeaksAreNamed) {
  const auto stream = make_stream();
  const auto event = make_event();
  auto* device = make_device_bytes(64);
  const auto pages = make_pages(1);
  EXPECT_EQ(cudaHostRegister(pages.get(), 4096, 0), cudaSuccess);
  const auto found = leaks();
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].find("stream "), 0u);
  EXPECT_EQ(found[1].find("event "), 0u);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(leaks().size(), 1u);
  EXPECT_EQ(leaks()[0].find("registration "), 0u);
  EXPECT_EQ(cudaHostUnregister(pages.get()), cudaSuccess);
  EXPECT_TRUE(leaks().empty());
}

TEST_F(stand_in_streams, ADeviceDescribesItself) {
  auto wanted = manual();
  wanted.devices = 2;
  wanted.numa_node = 1;
  wanted.attributes[cudaDevAttrMultiProcessorCount] = 4;
  start(wanted);
  int count = 0;
  int driver = 0;
  int runtime = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cudaDriverGetVersion(&driver), cudaSuccess);
  EXPECT_EQ(cudaRuntimeGetVersion(&runtime), cudaSuccess);
  EXPECT_EQ(driver, CUDART_VERSION);
  EXPECT_EQ(runtime, CUDART_VERSION);
  cudaDeviceProp properties{};
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
  EXPECT_EQ(properties.multiProcessorCount, 4);
  EXPECT_EQ(properties.major, 9);
  EXPECT_STREQ(properties.name, "stand-in device 1");
  int node = -1;
  EXPECT_EQ(cudaDeviceGetAttribute(&node, cudaDevAttrHostNumaId, 1),
            cudaSuccess);
  EXPECT_EQ(node, 1);
  std::set<std::string> ids;
  for (int device = 0; device < 2; ++device) {
    char id[13] = {};
    EXPECT_EQ(cudaDeviceGetPCIBusId(id, sizeof id, device), cudaSuccess);
    ids.insert(id);
  }
  EXPECT_EQ(ids, (std::set<std::string>{"0000:18:00.0", "0000:19:00.0"}));
}

} // namespace
} // namespace kvtide::stand_in
