// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/cuda_stand_in/fixture.hpp"

namespace kvtide::stand_in {
namespace {

struct stand_in_memory : machine_test {};

TEST_F(stand_in_memory, DeviceMemoryIsReachedThroughItsView) {
  auto* device = make_device_bytes(100);
  EXPECT_NE(device_view(device, 100), nullptr);
  EXPECT_NE(device_view(device, 100), device);
  EXPECT_EQ(device_view_of(device + 60, 40), device_view_of(device) + 60);
  EXPECT_EQ(device_view(device + 60, 41), nullptr);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(device_view(device, 1), nullptr);
}

TEST_F(stand_in_memory, ATestMayAskForDeviceAddressesThatTheHostCanUse) {
  auto wanted = manual();
  wanted.host_can_use_device_addresses = true;
  start(wanted);
  auto* device = make_device_bytes(64);
  EXPECT_EQ(device_view(device, 64), device);
  std::memset(device, 4, 64);
  EXPECT_EQ(count_of(device, 64, 4), 64u);
}

/// A GPU's memory is not mapped into the host's.
TEST_F(stand_in_memory, TheHostDiesOfADeviceAddress) {
  auto* device = make_device_bytes(64);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(*device = std::byte{1}, "");
}

/// CUDA Runtime API, cudaFree: an address that was freed already is an error.
TEST_F(stand_in_memory, MemoryIsFreedOnceByItsStart) {
  auto* device = make_device_bytes(100);
  auto* host = make_host_bytes(100, 0);
  EXPECT_EQ(cudaFree(device + 1), cudaErrorInvalidValue);
  expect_refusal("not the start");
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaErrorInvalidValue);
  expect_refusal("not the start");
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(host), cudaErrorInvalidValue);
  expect_refusal("not the start");
}

/// CUDA Runtime API, cudaFree: may synchronize, which nobody should rely on.
TEST_F(stand_in_memory, FreeingMemoryInUseWaitsAndIsNoted) {
  auto* device = make_device_bytes(64);
  auto* host = make_host_bytes(64, 0);
  const auto pages = make_pages(1);
  EXPECT_EQ(cudaHostRegister(pages.get(), 4096, 0), cudaSuccess);
  const auto stream = make_stream();
  copy(pages.get(), host, 64, stream);
  EXPECT_EQ(cudaHostUnregister(pages.get()), cudaSuccess);
  expect_refusal("cudaHostUnregister: operations that use");
  EXPECT_EQ(cudaMemsetAsync(device, 1, 64, stream), cudaSuccess);
  copy(host, device, 64, stream);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  expect_refusal("cudaFree: operations that use");
  EXPECT_EQ(count_of(host, 64, 1), 64u);
  EXPECT_EQ(cudaMemsetAsync(host, 2, 64, stream), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
  expect_refusal("cudaFreeHost: operations that use");
}

/// CUDA Runtime API, cudaHostRegister: memory is registered once; locks are per
/// page, so a shared page is memory that is registered already.
TEST_F(stand_in_memory, RegistrationsShareNoPage) {
  const auto pages = make_pages(3);
  EXPECT_EQ(cudaHostRegister(pages.get(), 4196, 0), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(pages.get() + 100, 10, 0),
            cudaErrorHostMemoryAlreadyRegistered);
  expect_refusal("shares a page");
  EXPECT_EQ(cudaHostRegister(pages.get() + 4200, 100, 0),
            cudaErrorHostMemoryAlreadyRegistered);
  expect_refusal("shares a page");
  EXPECT_EQ(cudaHostRegister(pages.get() + 8192, 4096, 0), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(pages.get() + 4096),
            cudaErrorHostMemoryNotRegistered);
  expect_refusal("not the start");
  EXPECT_EQ(cudaHostUnregister(pages.get()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(pages.get()), cudaErrorHostMemoryNotRegistered);
  expect_refusal("not the start");
  EXPECT_EQ(cudaHostUnregister(pages.get() + 8192), cudaSuccess);
}

/// CUDA Runtime API, cudaHostRegister: what the system does not lock is no
/// memory; the error goes away with cudaGetLastError.
TEST_F(stand_in_memory, RegistrationsHaveLimits) {
  auto wanted = manual();
  wanted.largest_registration = 8192;
  wanted.registration_limit = 12288;
  start(wanted);
  const auto pages = make_pages(5);
  EXPECT_EQ(cudaHostRegister(pages.get(), 12288, 0), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaHostRegister(pages.get(), 8192, 0), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(pages.get() + 8192, 8192, 0),
            cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(pages.get() + 8192, 4096, 0), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(pages.get()), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(pages.get(), 8192, 0), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(pages.get()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(pages.get() + 8192), cudaSuccess);
}

TEST_F(stand_in_memory, DeviceMemoryHasAnEnd) {
  auto wanted = manual();
  wanted.device_memory = 1000;
  start(wanted);
  auto* device = make_device_bytes(600);
  void* more = device;
  EXPECT_EQ(cudaMalloc(&more, 600), cudaErrorMemoryAllocation);
  EXPECT_EQ(more, nullptr);
  std::size_t left = 0;
  std::size_t total = 0;
  EXPECT_EQ(cudaMemGetInfo(&left, &total), cudaSuccess);
  EXPECT_EQ(left, 400u);
  EXPECT_EQ(total, 1000u);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&more, 600), cudaSuccess);
}

/// CUDA Runtime API, cudaHostGetDevicePointer: may differ from the host pointer
/// of registered memory; then kernels need the one that it returns.
TEST_F(stand_in_memory, ADeviceMayHaveItsOwnAddressOfRegisteredMemory) {
  auto wanted = manual();
  wanted.registered_memory_has_other_device_address = true;
  start(wanted);
  const auto pages = make_pages(1);
  auto* host = pages.get();
  EXPECT_EQ(cudaHostRegister(host, 4096, 0), cudaSuccess);
  void* found = nullptr;
  EXPECT_EQ(cudaHostGetDevicePointer(&found, host + 8, 0), cudaSuccess);
  EXPECT_NE(found, host + 8);
  EXPECT_EQ(device_view(found, 8), host + 8);
  EXPECT_EQ(device_view(host + 8, 8), nullptr);
  int can_use = -1;
  EXPECT_EQ(cudaDeviceGetAttribute(
              &can_use, cudaDevAttrCanUseHostPointerForRegisteredMem, 0),
            cudaSuccess);
  EXPECT_EQ(can_use, 0);
  // Copies take either.
  auto* device = make_device_bytes(8);
  const auto stream = make_stream();
  EXPECT_EQ(cudaMemsetAsync(found, 3, 8, stream), cudaSuccess);
  copy(device, host + 8, 8, stream);
  run_all();
  EXPECT_EQ(count_of(device, 8, 3), 8u);
  // A kernel that was given the host's address is lost, and its context with
  // it.
  const auto nothing = [] {};
  EXPECT_EQ(enqueue(stream, nothing, nothing, {{found, 8}, {device, 8}}),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(enqueue(stream, nothing, nothing, {{host + 8, 8}}), cudaSuccess);
  expect_refusal("no device can reach");
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
}

/// CUDA Runtime API, cudaPointerGetAttributes: says what kind of memory it is;
/// since 11.0, other memory of the host is no error.
TEST_F(stand_in_memory, PointersAreDescribed) {
  auto wanted = manual();
  wanted.devices = 2;
  start(wanted);
  const auto pages = make_pages(1);
  cudaPointerAttributes about{};
  EXPECT_EQ(cudaPointerGetAttributes(&about, pages.get()), cudaSuccess);
  EXPECT_EQ(about.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(pages.get(), 4096, 0), cudaSuccess);
  EXPECT_EQ(cudaPointerGetAttributes(&about, pages.get() + 1), cudaSuccess);
  EXPECT_EQ(about.type, cudaMemoryTypeHost);
  EXPECT_EQ(about.hostPointer, pages.get() + 1);
  auto* device = make_device_bytes(64);
  EXPECT_EQ(cudaPointerGetAttributes(&about, device + 1), cudaSuccess);
  EXPECT_EQ(about.type, cudaMemoryTypeDevice);
  EXPECT_EQ(about.device, 1);
  EXPECT_EQ(about.devicePointer, device + 1);
  EXPECT_EQ(about.hostPointer, nullptr);
  EXPECT_EQ(cudaHostUnregister(pages.get()), cudaSuccess);
}

} // namespace
} // namespace kvtide::stand_in
