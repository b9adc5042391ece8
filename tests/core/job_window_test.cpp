// SPDX-License-Identifier: Apache-2.0

#include "core/job_window.hpp"

#include <gtest/gtest.h>

namespace kvtide::core {
namespace {

TEST(JobWindow, FindsWhatIsThere) {
  auto uut = job_window<int>{};
  EXPECT_EQ(uut.find(0), nullptr);
  uut.insert(7, 70);
  uut.insert(9, 90);
  ASSERT_NE(uut.find(7), nullptr);
  EXPECT_EQ(*uut.find(7), 70);
  EXPECT_EQ(*uut.find(9), 90);
  EXPECT_EQ(uut.find(6), nullptr);
  EXPECT_EQ(uut.find(8), nullptr);
  EXPECT_EQ(uut.find(10), nullptr);
}

TEST(JobWindow, TakesAnOlderIdToo) {
  auto uut = job_window<int>{};
  uut.insert(5, 50);
  uut.insert(3, 30);
  EXPECT_EQ(*uut.find(3), 30);
  EXPECT_EQ(uut.find(4), nullptr);
  EXPECT_EQ(*uut.find(5), 50);
}

TEST(JobWindow, ReplacesWhatIsThere) {
  auto uut = job_window<int>{};
  uut.insert(1, 10);
  EXPECT_EQ(uut.insert(1, 11), 11);
  EXPECT_EQ(*uut.find(1), 11);
}

TEST(JobWindow, ForgetsInAnyOrder) {
  auto uut = job_window<int>{};
  for (auto id : {1, 2, 3, 4})
    uut.insert(static_cast<job_id>(id), id);
  uut.erase(2);
  EXPECT_EQ(uut.find(2), nullptr);
  uut.erase(1);
  uut.erase(1'025);
  EXPECT_EQ(*uut.find(3), 3);
  EXPECT_EQ(*uut.find(4), 4);
  uut.insert(2, 20);
  EXPECT_EQ(*uut.find(2), 20);
}

TEST(JobWindow, GrowsAroundWhatStays) {
  auto uut = job_window<job_id>{};
  uut.insert(3, 3);
  for (auto id = job_id{4}; id < 5'000; ++id) {
    uut.insert(id, id);
    if (id >= 10)
      uut.erase(id - 5);
  }
  ASSERT_NE(uut.find(3), nullptr) << "the oldest of all";
  EXPECT_EQ(*uut.find(3), 3u);
  for (auto id = job_id{4'995}; id < 5'000; ++id)
    EXPECT_EQ(*uut.find(id), id);
  EXPECT_EQ(uut.find(4'994), nullptr);
}

} // namespace
} // namespace kvtide::core
