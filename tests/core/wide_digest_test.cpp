// SPDX-License-Identifier: Apache-2.0

#include "core/wide_digest.hpp"

#include <gtest/gtest.h>

namespace kvtide::core {
namespace {

chunk_key key(const char* hash, std::size_t size, group_id group,
              std::uint64_t model) {
  return {prefix_hash{hash, size}, group, model};
}

TEST(WideDigest, DependsOnEveryPartOfTheKey) {
  const auto one = wide_digest_of(key("abcd", 4, 1, 7));
  EXPECT_EQ(one, wide_digest_of(key("abcd", 4, 1, 7)));
  EXPECT_NE(one, wide_digest_of(key("abce", 4, 1, 7)));
  EXPECT_NE(one, wide_digest_of(key("abc", 3, 1, 7)));
  EXPECT_NE(one, wide_digest_of(key("abcd", 4, 2, 7)));
  EXPECT_NE(one, wide_digest_of(key("abcd", 4, 1, 8)));
  EXPECT_NE(one, wide_digest_of(key("abcd", 4, 1, std::uint64_t{7} << 32)));
}

// A hash cannot borrow bytes from the numbers behind it.
TEST(WideDigest, KeepsTheHashApartFromTheNumbers) {
  EXPECT_NE(wide_digest_of(key("ab\x01\0\0\0", 6, 2, 0)),
            wide_digest_of(key("ab", 2, 1, 2)));
}

// Pools in shared memory are older than the process that reads them.
TEST(WideDigest, StaysTheSameInAllVersions) {
  const auto one = wide_digest_of(key("abcd", 4, 1, 7));
  EXPECT_EQ(one.low, 0xc46029847f1569fau);
  EXPECT_EQ(one.high, 0x47dbd4c7e4e69466u);
}

} // namespace
} // namespace kvtide::core
