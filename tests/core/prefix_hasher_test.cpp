// SPDX-License-Identifier: Apache-2.0

#include "kvtide/prefix_hasher.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace kvtide {
namespace {

std::vector<std::int32_t> tokens(std::size_t count, std::int32_t first = 0) {
  auto out = std::vector<std::int32_t>(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

std::vector<prefix_hash> hash(const std::vector<std::int32_t>& text,
                              std::int32_t width, std::string salt = {}) {
  auto uut = prefix_hasher{width, std::move(salt)};
  return uut.append(text.data(), text.size());
}

TEST(PrefixHasher, MakesOneHashPerFullRunOfTokens) {
  EXPECT_EQ(hash(tokens(15), 4).size(), 3u);
  EXPECT_TRUE(hash(tokens(3), 4).empty());
}

TEST(PrefixHasher, GivesTheSameHashesHoweverTheTokensArrive) {
  const auto text = tokens(64);
  const auto whole = hash(text, 16);
  auto uut = prefix_hasher{16};
  auto parts = std::vector<prefix_hash>{};
  for (const auto& token : text)
    for (const auto& made : uut.append(&token, 1))
      parts.push_back(made);
  EXPECT_EQ(parts, whole);
  EXPECT_EQ(uut.made(), 4u);
}

TEST(PrefixHasher, CoversEverythingBefore) {
  auto text = tokens(12);
  const auto first = hash(text, 4);
  text[0] = 99;
  const auto second = hash(text, 4);
  for (std::size_t i = 0; i < first.size(); ++i)
    EXPECT_NE(first[i], second[i]);
}

TEST(PrefixHasher, KeepsSaltsApart) {
  EXPECT_NE(hash(tokens(4), 4, "a"), hash(tokens(4), 4, "b"));
  EXPECT_NE(hash(tokens(4), 4, "a"), hash(tokens(4), 4));
}

} // namespace
} // namespace kvtide
