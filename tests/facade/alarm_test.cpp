// SPDX-License-Identifier: Apache-2.0

#include "actors/alarm.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

namespace kvtide {
namespace {

using namespace std::chrono_literals;

constexpr nanoseconds_t ms = 1'000'000;

TEST(Alarm, IsSetOnceForWhatIsDueFirst) {
  auto uut = alarm{};
  EXPECT_EQ(uut.set(0, never), std::nullopt);
  EXPECT_EQ(uut.set(0, 5 * ms), 5ms);
  EXPECT_EQ(uut.set(1 * ms, 5 * ms), std::nullopt);
  EXPECT_EQ(uut.set(1 * ms, 9 * ms), std::nullopt) << "that one comes earlier";
  EXPECT_EQ(uut.set(1 * ms, 3 * ms), 2ms);
  uut.rang();
  EXPECT_EQ(uut.set(3 * ms, 9 * ms), std::nullopt);
  uut.rang();
  EXPECT_EQ(uut.set(5 * ms, 9 * ms), 4ms);
}

TEST(Alarm, IsDueAtOnceForWhatIsOver) {
  auto uut = alarm{};
  EXPECT_EQ(uut.set(7 * ms, 5 * ms), 0ms);
}

TEST(Alarm, IsNeverSetFarAhead) {
  auto uut = alarm{};
  EXPECT_EQ(uut.set(0, never - 1), 100ms);
}

TEST(Alarm, IgnoresARingThatWasNotAskedFor) {
  auto uut = alarm{};
  uut.rang();
  EXPECT_EQ(uut.set(0, 5 * ms), 5ms);
}

TEST(Alarm, HasFewMessagesUnderWayHoweverOftenItIsSet) {
  auto uut = alarm{};
  auto arrivals = std::multiset<nanoseconds_t>{};
  for (nanoseconds_t now = 0; now < 500 * ms; now += 2 * ms) {
    for (; !arrivals.empty() && *arrivals.begin() <= now;
         arrivals.erase(arrivals.begin()))
      uut.rang();
    for (auto due : {now + 5 * ms, now + 10'000 * ms})
      if (const auto wait = uut.set(now, due))
        arrivals.insert(now + wait->count());
    EXPECT_LE(arrivals.size(), 2u);
  }
}

} // namespace
} // namespace kvtide
