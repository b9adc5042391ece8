// SPDX-License-Identifier: Apache-2.0

/// @file
/// A machine per test, short ways to make things of it, and the demand that
/// what was refused is what the test expects.

#pragma once

#include "tests/gpu/cuda_stand_in/stand_in.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace kvtide::stand_in {

/// Nothing runs unless the test says so.
inline settings manual(std::uint64_t seed = 1) {
  settings wanted;
  wanted.threads = 0;
  wanted.seed = seed;
  return wanted;
}

class machine_test : public ::testing::Test {
protected:
  machine_test() {
    start(manual());
  }

  ~machine_test() override {
    EXPECT_EQ(refusals().size(), expected_refusals)
      << (refusals().empty() ? "" : refusals().back());
    start();
  }

  static cudaStream_t make_stream(unsigned flags = cudaStreamNonBlocking) {
    cudaStream_t made = nullptr;
    EXPECT_EQ(cudaStreamCreateWithPriority(&made, flags, 0), cudaSuccess);
    return made;
  }

  static cudaEvent_t make_event(unsigned flags = cudaEventDisableTiming) {
    cudaEvent_t made = nullptr;
    EXPECT_EQ(cudaEventCreateWithFlags(&made, flags), cudaSuccess);
    return made;
  }

  static std::byte* make_device_bytes(std::size_t bytes) {
    void* made = nullptr;
    EXPECT_EQ(cudaMalloc(&made, bytes), cudaSuccess);
    return static_cast<std::byte*>(made);
  }

  static std::byte* make_host_bytes(std::size_t bytes, int value) {
    void* made = nullptr;
    EXPECT_EQ(cudaHostAlloc(&made, bytes, cudaHostAllocDefault), cudaSuccess);
    std::memset(made, value, bytes);
    return static_cast<std::byte*>(made);
  }

  /// Whole pages, as registrations lock them.
  static std::unique_ptr<std::byte, decltype(&std::free)>
  make_pages(std::size_t count) {
    void* made = nullptr;
    EXPECT_EQ(::posix_memalign(&made, 4096, count * 4096), 0);
    std::memset(made, 0, count * 4096);
    return {static_cast<std::byte*>(made), &std::free};
  }

  static void copy(void* to, const void* from, std::size_t bytes,
                   cudaStream_t stream) {
    EXPECT_EQ(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
              cudaSuccess);
  }

  /// Bytes of a range that have a value; device memory or the host's.
  static std::size_t count_of(const std::byte* address, std::size_t bytes,
                              int value) {
    if (const auto* view = device_view_of(address, bytes); view != nullptr)
      address = view;
    std::size_t count = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      count += address[i] == static_cast<std::byte>(value) ? 1 : 0;
    return count;
  }

  /// The one refusal that a test provokes.
  void expect_refusal(const std::string& part) {
    ++expected_refusals;
    ASSERT_EQ(refusals().size(), expected_refusals);
    EXPECT_NE(refusals().back().find(part), std::string::npos)
      << refusals().back();
  }

  std::size_t expected_refusals = 0;
};

} // namespace kvtide::stand_in
