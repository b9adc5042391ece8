// SPDX-License-Identifier: Apache-2.0

#include "gpu/fragments.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace kvtide::gpu {
namespace {

class fragments_test : public ::testing::Test {
protected:
  /// Three pieces of 3, 4 and 2 bytes in rows 0, 0 and 2.
  std::vector<fragment> list() {
    return {{to_.data(), from_.data(), 3, 0},
            {to_.data() + 4, from_.data() + 3, 4, 0},
            {to_.data() + 9, from_.data() + 7, 2, 2}};
  }

  std::string from_ = "abcdefghi";
  std::string to_ = "...........";
};

TEST_F(fragments_test, CountsBytes) {
  EXPECT_EQ(total_bytes(list()), 9u);
  EXPECT_EQ(total_bytes({}), 0u);
  EXPECT_EQ(bytes_before_row(list(), 0), 0u);
  EXPECT_EQ(bytes_before_row(list(), 1), 7u);
  EXPECT_EQ(bytes_before_row(list(), 2), 7u);
  EXPECT_EQ(bytes_before_row(list(), 3), 9u);
}

TEST_F(fragments_test, CopiesARangeAndCutsFragments) {
  copy_range(list(), 0, 4);
  EXPECT_EQ(to_, "abc.d......");
  copy_range(list(), 5, 8);
  EXPECT_EQ(to_, "abc.d.fg.h.");
  copy_range(list(), 4, 9);
  EXPECT_EQ(to_, "abc.defg.hi");
}

TEST_F(fragments_test, CopiesNothingForAnEmptyRange) {
  copy_range(list(), 4, 4);
  copy_range({}, 0, 9);
  EXPECT_EQ(to_, "...........");
}

TEST_F(fragments_test, TimesACopyWhateverItsLength) {
  EXPECT_GE(timed_copy(list(), 0, 4), 0);
  EXPECT_EQ(to_, "abc.d......");
  EXPECT_GE(timed_copy({}, 0, 0), 0);
}

TEST_F(fragments_test, TellsTheTimeThatACopyTakes) {
  EXPECT_EQ(copy_time(1'000, 5, 0), 5);
  EXPECT_EQ(copy_time(1'000, 5, 1'000'000'000), 1'005);
  EXPECT_EQ(copy_time(10, 0, 3'000'000'000), 4) << "rounded up";
  EXPECT_EQ(copy_time(std::numeric_limits<std::uint64_t>::max(), 5, 1), never);
  EXPECT_EQ(copy_time(1, never, 1), never);
}

TEST_F(fragments_test, SumsStopAtNever) {
  EXPECT_EQ(later_by(3, 4), 7);
  EXPECT_EQ(later_by(never, 4), never);
  EXPECT_EQ(later_by(4, never), never);
}

} // namespace
} // namespace kvtide::gpu
