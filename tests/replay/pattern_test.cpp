// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/pattern.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <vector>

namespace kvtide::replay {
namespace {

std::vector<std::byte> filled(std::size_t size, std::uint64_t seed) {
  auto res = std::vector<std::byte>(size);
  fill_pattern(res.data(), 0, size, seed);
  return res;
}

TEST(Pattern, DependsOnEveryPartOfThePlace) {
  auto seeds = std::set<std::uint64_t>{};
  for (std::uint64_t run : {1u, 2u})
    for (group_id group : {0u, 1u})
      for (std::uint32_t layer : {0u, 1u, 2u})
        for (std::uint32_t plane : {0u, 1u})
          for (rank_id rank : {0u, 1u})
            seeds.insert(plane_seed(run, {group, layer, plane, rank}));
  EXPECT_EQ(seeds.size(), 48u);
}

TEST(Pattern, DependsOnThePosition) {
  auto words = std::set<std::uint64_t>{};
  for (std::uint64_t index = 0; index < 1'000; ++index)
    words.insert(pattern_word(42, index));
  EXPECT_EQ(words.size(), 1'000u);
}

// Filling byte by byte, in pieces or at once gives the same bytes.
RC_GTEST_PROP(Pattern, CanBeFilledInPieces, (std::uint64_t seed)) {
  const auto size = *rc::gen::inRange<std::size_t>(1, 70);
  const auto cut = *rc::gen::inRange<std::size_t>(0, size + 1);
  const auto whole = filled(size, seed);
  auto parts = std::vector<std::byte>(size);
  fill_pattern(parts.data(), cut, size, seed);
  fill_pattern(parts.data(), 0, cut, seed);
  RC_ASSERT(parts == whole);
  for (auto offset = std::size_t{0}; offset < size; ++offset)
    RC_ASSERT(pattern_byte(seed, offset) == whole[offset]);
}

RC_GTEST_PROP(Pattern, FindsTheFirstWrongByteInItsRange, (std::uint64_t seed)) {
  const auto size = *rc::gen::inRange<std::size_t>(1, 70);
  const auto first = *rc::gen::inRange<std::size_t>(0, size);
  const auto last = *rc::gen::inRange<std::size_t>(first, size + 1);
  const auto wrong = *rc::gen::inRange<std::size_t>(0, size);
  auto bytes = filled(size, seed);
  RC_ASSERT(find_difference(bytes.data(), first, last, seed) == last);
  bytes[wrong] ^= std::byte{*rc::gen::inRange<std::uint8_t>(1, 255)};
  const auto expected = wrong >= first && wrong < last ? wrong : last;
  RC_ASSERT(find_difference(bytes.data(), first, last, seed) == expected);
}

} // namespace
} // namespace kvtide::replay
