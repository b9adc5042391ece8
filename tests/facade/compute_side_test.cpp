// SPDX-License-Identifier: Apache-2.0

#include "actors/compute_side.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

namespace kvtide {
namespace {

/// Answers with the stream, and dies with its last user.
compute_calls echo(std::shared_ptr<std::atomic<int>> used) {
  auto out = compute_calls{};
  out.record = [used](std::uint64_t stream) {
    ++*used;
    return result<std::uint64_t>{stream};
  };
  out.check_not_capturing = [] { return error{ec::out_of_order, "captured"}; };
  return out;
}

TEST(ComputeSide, PassesCallsOnWhileMemoryIsRegistered) {
  auto used = std::make_shared<std::atomic<int>>(0);
  auto uut = compute_side{};
  EXPECT_EQ(uut.record(7).failure().code, ec::out_of_order);
  EXPECT_EQ(uut.check_not_capturing().code, ec::none);
  uut.open(echo(used));
  EXPECT_EQ(uut.record(7).value(), 7u);
  EXPECT_EQ(uut.check_not_capturing().text, "captured");
  uut.close();
  EXPECT_EQ(uut.record(7).failure().code, ec::out_of_order);
  EXPECT_EQ(uut.check_not_capturing().code, ec::none);
  EXPECT_EQ(*used, 1);
  EXPECT_EQ(used.use_count(), 1) << "what was closed is gone";
}

TEST(ComputeSide, G7SaysForEverWhyItsDeviceIsLost) {
  auto uut = compute_side{};
  uut.open(echo(std::make_shared<std::atomic<int>>(0)));
  EXPECT_EQ(uut.lost().code, ec::none);
  uut.lose({ec::device_failure, "lost"});
  uut.close();
  EXPECT_EQ(uut.lost().text, "lost");
  EXPECT_EQ(uut.record(7).failure().text, "lost");
  EXPECT_EQ(uut.check_not_capturing().code, ec::none);
}

// A device ends while the rank's thread is in a call.
TEST(ComputeSide, NothingIsGoneWhileSomebodyUsesIt) {
  auto used = std::make_shared<std::atomic<int>>(0);
  auto uut = compute_side{};
  auto caller = std::thread{[&uut] {
    for (auto i = std::uint64_t{1}; i <= 1'000; ++i) {
      const auto made = uut.record(i);
      if (made) {
        EXPECT_EQ(made.value(), i);
      }
    }
  }};
  for (auto i = 0; i < 1'000; ++i) {
    uut.open(echo(used));
    uut.close();
  }
  caller.join();
  EXPECT_EQ(used.use_count(), 1);
}

} // namespace
} // namespace kvtide
