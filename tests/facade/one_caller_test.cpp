// SPDX-License-Identifier: Apache-2.0

#include "actors/one_caller.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace kvtide {
namespace {

TEST(OneCaller, LetsOneInAtATimeAndCountsTheOthers) {
  auto uut = one_caller{};
  {
    const auto first = uut.enter();
    EXPECT_TRUE(first);
    EXPECT_FALSE(uut.enter());
    EXPECT_FALSE(uut.enter()) << "who was turned away lets nobody in";
    EXPECT_EQ(uut.refused(), 2u);
  }
  EXPECT_TRUE(uut.enter());
  EXPECT_EQ(uut.refused(), 2u);
}

TEST(OneCaller, IsHeldByWhoHasTheEntryLast) {
  auto uut = one_caller{};
  auto first = uut.enter();
  const auto kept = std::move(first);
  EXPECT_TRUE(kept);
  EXPECT_FALSE(uut.enter());
}

TEST(OneCaller, KeepsThreadsOutOfWhatOneOfThemChanges) {
  constexpr auto rounds = 10'000;
  auto uut = one_caller{};
  auto changed = std::uint64_t{0}; // Without a lock, as in the facade.
  auto entered = std::atomic<std::uint64_t>{0};
  const auto work = [&] {
    for (auto i = 0; i < rounds; ++i)
      if (const auto inside = uut.enter()) {
        ++changed;
        ++entered;
      }
  };
  auto threads = std::vector<std::thread>{};
  for (auto i = 0; i < 3; ++i)
    threads.emplace_back(work);
  for (auto& one : threads)
    one.join();
  EXPECT_EQ(changed, entered);
  EXPECT_EQ(changed + uut.refused(), 3u * rounds);
}

} // namespace
} // namespace kvtide
