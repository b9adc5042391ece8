// SPDX-License-Identifier: Apache-2.0

#include "core/use_counter.hpp"
#include "tests/core/pool_keys.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kvtide::core {
namespace {

TEST(UseCounter, CountsEachKeyByItself) {
  auto uut = use_counter{};
  uut.add(named_key("a"));
  uut.add(named_key("a"));
  uut.add(named_key("b"));
  EXPECT_EQ(uut.count(named_key("a")), 2u);
  EXPECT_EQ(uut.count(named_key("b")), 1u);
  EXPECT_EQ(uut.count(named_key("c")), 0u);
}

TEST(UseCounter, ForgetsTheKeyThatWasNotLookedUpForLongest) {
  auto uut = use_counter{};
  uut.add(named_key("old"));
  uut.add(named_key("kept"));
  for (std::size_t at = 2; at < use_counter::max_keys; ++at)
    uut.add(named_key(std::to_string(at)));
  uut.add(named_key("kept"));
  EXPECT_EQ(uut.count(named_key("old")), 1u);
  uut.add(named_key("one too many"));
  EXPECT_EQ(uut.count(named_key("old")), 0u);
  EXPECT_EQ(uut.count(named_key("kept")), 2u);
}

} // namespace
} // namespace kvtide::core
