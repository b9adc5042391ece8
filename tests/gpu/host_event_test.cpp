// SPDX-License-Identifier: Apache-2.0

#include "gpu/host_event.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <stop_token>
#include <thread>
#include <vector>

namespace kvtide::gpu {
namespace {

std::uint64_t made(host_event_table& table) {
  auto created = table.create();
  EXPECT_TRUE(created.ok());
  return created.ok() ? created.value() : 0;
}

/// G2: who never made an event has no complete one.
TEST(host_event_table, HandleZeroIsUnknown) {
  host_event_table table;
  EXPECT_EQ(table.state(0), event_state::unknown);
  EXPECT_FALSE(table.wait(0, {}));
  EXPECT_FALSE(table.complete(0));
}

TEST(host_event_table, CompletesAnEventOnce) {
  host_event_table table;
  const auto handle = made(table);
  EXPECT_EQ(table.state(handle), event_state::pending);
  EXPECT_EQ(table.pending(), 1u);
  EXPECT_TRUE(table.complete(handle));
  EXPECT_EQ(table.state(handle), event_state::complete);
  EXPECT_FALSE(table.complete(handle));
  EXPECT_EQ(table.pending(), 0u);
}

/// G2: an old handle never becomes another event's.
TEST(host_event_table, AnOldHandleStaysCompleteWhenItsPlaceIsUsedAgain) {
  host_event_table table{1};
  const auto old = made(table);
  EXPECT_TRUE(table.complete(old));
  const auto next = made(table);
  EXPECT_NE(old, next);
  EXPECT_EQ(table.state(old), event_state::complete);
  EXPECT_EQ(table.state(next), event_state::pending);
  EXPECT_FALSE(table.complete(old));
  EXPECT_EQ(table.state(next), event_state::pending);
}

/// G2: an event that was never made is not "complete".
TEST(host_event_table, KnowsWhichHandlesItNeverMade) {
  host_event_table table{2};
  const auto handle = made(table);
  const auto generation = std::uint64_t{1} << 32;
  for (const auto wrong : {handle + generation, std::uint64_t{3} | generation,
                           std::uint64_t{1}, generation}) {
    EXPECT_EQ(table.state(wrong), event_state::unknown) << wrong;
    EXPECT_FALSE(table.complete(wrong));
    EXPECT_FALSE(table.wait(wrong, {}));
  }
}

TEST(host_event_table, RefusesMoreThanItHolds) {
  host_event_table table{2};
  const auto first = made(table);
  made(table);
  const auto refused = table.create();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, ec::out_of_memory);
  EXPECT_TRUE(table.complete(first));
  EXPECT_TRUE(table.create().ok());
}

TEST(host_event_table, WakesAllThatWait) {
  host_event_table table;
  const auto handle = made(table);
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      if (table.wait(handle, {}))
        ++woken;
    });
  EXPECT_TRUE(table.complete(handle));
  for (auto& thread : threads)
    thread.join();
  EXPECT_EQ(woken, 3);
}

TEST(host_event_table, AWaitCanBeStopped) {
  host_event_table table;
  const auto handle = made(table);
  std::stop_source stop;
  auto complete = true;
  std::thread waiting{[&] { complete = table.wait(handle, stop.get_token()); }};
  stop.request_stop();
  waiting.join();
  EXPECT_FALSE(complete);
}

} // namespace
} // namespace kvtide::gpu
