// SPDX-License-Identifier: Apache-2.0

#include "gpu/host_memory.hpp"
#include "gpu/memory_limits.hpp"
#include "gpu/parallel_fault.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace kvtide::gpu {
namespace {

/// Addresses to name, of which no page is ever found.
class parallel_fault : public ::testing::Test {
protected:
  /// Not a whole number of shares.
  static constexpr std::uint64_t bytes = 4 * fault_share + 4'096;

  void SetUp() override {
    auto made = host_memory::map(bytes, {false, 2 * bytes});
    ASSERT_TRUE(made.ok()) << made.failure().text;
    memory_ = std::move(made).value();
  }

  /// Notes a range and fails at `failing_`.
  int note(std::byte* data, std::uint64_t length) {
    const auto offset = static_cast<std::uint64_t>(data - memory_.data());
    const std::lock_guard lock{mutex_};
    ranges_.emplace_back(offset, length);
    return offset == failing_ ? ENOMEM : 0;
  }

  int run(std::uint32_t threads) {
    return fault_in_parallel(
      memory_.data(), bytes, 4'096, threads,
      [this](std::byte* data, std::uint64_t length, std::uint64_t) {
        return note(data, length);
      });
  }

  host_memory memory_;
  std::mutex mutex_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
  std::uint64_t failing_ = bytes;
};

TEST_F(parallel_fault, TouchesEachByteOnce) {
  for (const auto threads : {0u, 1u, 3u, 64u}) {
    ranges_.clear();
    EXPECT_EQ(run(threads), 0);
    std::sort(ranges_.begin(), ranges_.end());
    std::uint64_t next = 0;
    for (const auto& [first, length] : ranges_) {
      EXPECT_EQ(first, next);
      next += length;
    }
    EXPECT_EQ(next, bytes);
  }
}

TEST_F(parallel_fault, SharesAreTakenAtTheSameTime) {
  std::latch all{3}; // Nobody goes on before three threads have a share.
  const auto meet = [&](std::byte*, std::uint64_t, std::uint64_t) {
    all.arrive_and_wait();
    return 0;
  };
  EXPECT_EQ(fault_in_parallel(memory_.data(), 3 * fault_share, 4'096, 3, meet),
            0);
}

TEST_F(parallel_fault, OneShareCostsNoThread) {
  const auto here = std::this_thread::get_id();
  auto calls = 0;
  const auto look = [&](std::byte*, std::uint64_t, std::uint64_t) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    ++calls;
    return 0;
  };
  EXPECT_EQ(fault_in_parallel(memory_.data(), fault_share, 4'096, 8, look), 0);
  EXPECT_EQ(calls, 1);
}

TEST_F(parallel_fault, AnErrorOfAnyShareComesBackAndEndsTheWork) {
  failing_ = 2 * fault_share;
  EXPECT_EQ(run(1), ENOMEM);
  EXPECT_EQ(ranges_.size(), 3u); // The two behind it were not taken.
  EXPECT_EQ(run(4), ENOMEM);
}

TEST_F(parallel_fault, OfTheKernelWritesToPages) {
  const auto page = base_page_bytes();
  EXPECT_EQ(fault_in_parallel(memory_.data(), 3 * page, page, 0), 0);
  if (!faults_return_errors())
    GTEST_SKIP() << "this kernel has no advice for it";
  EXPECT_NE(fault_pages(nullptr, page, page), 0); // Nothing is mapped there.
}

} // namespace
} // namespace kvtide::gpu
