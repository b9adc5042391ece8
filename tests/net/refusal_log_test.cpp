// SPDX-License-Identifier: Apache-2.0

#include "net/refusal_log.hpp"
#include "tests/net/log_ear.hpp"

#include <gtest/gtest.h>

namespace kvtide::net {
namespace {

TEST(RefusalLog, SaysAsMuchAsAFloodAllows) {
  auto ear = test::log_ear{};
  auto uut = refusal_log{};
  auto now = refusal_log::clock::now();
  for (auto i = 0; i < 1'000; ++i)
    uut.note("somebody", "it shouted", now);
  EXPECT_EQ(uut.count(), 1'000U);
  EXPECT_EQ(ear.count("somebody"), refusal_log::burst);
  EXPECT_EQ(ear.count("more before"), 0U);
  now += refusal_log::refill;
  uut.note("somebody", "it shouted", now);
  uut.note("somebody", "it shouted", now);
  EXPECT_EQ(ear.count("somebody"), refusal_log::burst + 1);
  EXPECT_EQ(ear.count("(and 984 more before)"), 1U) << ear.text();
}

} // namespace
} // namespace kvtide::net
