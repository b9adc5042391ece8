// SPDX-License-Identifier: Apache-2.0

#include "core/key_list.hpp"

#include <gtest/gtest.h>

namespace kvtide::core {
namespace {

constexpr auto segment = key_view::segment_keys;

prefix_hash hash_of(std::size_t number) {
  return {&number, sizeof(number)};
}

key_list list_of(std::size_t size) {
  auto out = key_list{2, 77};
  for (std::size_t i = 0; i < size; ++i)
    out.append(hash_of(i));
  return out;
}

TEST(KeyList, KeepsHashGroupAndModel) {
  const auto keys = list_of(3);
  EXPECT_EQ(keys.size(), 3u);
  EXPECT_EQ(keys[1], (chunk_key{hash_of(1), 2, 77}));
  const auto view = keys.view();
  EXPECT_EQ(view[2], (chunk_key{hash_of(2), 2, 77}));
  EXPECT_EQ(view.group(), 2u);
}

TEST(KeyList, GrowsBeyondASegment) {
  const auto keys = list_of(2 * segment + 1);
  const auto view = keys.view();
  ASSERT_EQ(view.size(), 2 * segment + 1);
  for (std::size_t i = 0; i < view.size(); ++i)
    ASSERT_EQ(view.hash(i), hash_of(i));
}

TEST(KeyList, AViewDoesNotSeeWhatComesLater) {
  auto keys = list_of(1);
  const auto view = keys.view();
  keys.append(hash_of(9));
  EXPECT_EQ(view.size(), 1u);
  EXPECT_EQ(view.hash(0), hash_of(0));
}

TEST(KeyList, AViewKeepsWhatIsForgottenAndOverwritten) {
  for (auto size : {std::size_t{5}, segment, segment + 5}) {
    auto keys = list_of(size);
    const auto view = keys.view();
    keys.truncate(2);
    ASSERT_EQ(keys.size(), 2u);
    keys.append(hash_of(1'000));
    EXPECT_EQ(keys[2], (chunk_key{hash_of(1'000), 2, 77}));
    ASSERT_EQ(view.size(), size);
    for (std::size_t i = 0; i < size; ++i)
      ASSERT_EQ(view.hash(i), hash_of(i));
  }
}

TEST(KeyList, TruncatesAtTheEdgesOfASegment) {
  auto keys = list_of(2 * segment);
  keys.truncate(3 * segment);
  EXPECT_EQ(keys.size(), 2 * segment);
  keys.truncate(segment);
  keys.append(hash_of(7));
  EXPECT_EQ(keys[segment], (chunk_key{hash_of(7), 2, 77}));
  keys.truncate(0);
  EXPECT_TRUE(keys.view().empty());
  keys.append(hash_of(8));
  EXPECT_EQ(keys[0], (chunk_key{hash_of(8), 2, 77}));
}

} // namespace
} // namespace kvtide::core
