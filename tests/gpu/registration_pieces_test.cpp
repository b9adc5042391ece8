// SPDX-License-Identifier: Apache-2.0

#include "gpu/registration_pieces.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <cstdint>

namespace kvtide::gpu {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t page = 4'096;
constexpr std::uint64_t gib = std::uint64_t{1} << 30;

/// An address that nobody looks behind.
std::byte* base() {
  return reinterpret_cast<std::byte*>(std::uintptr_t{1} << 32);
}

TEST(registration_pieces, OfAPoolBelowTheLimitAreOne) {
  const auto made = registration_pieces::cut({base(), 7}, 64, page, 448);
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made.value().count(), 1u);
  EXPECT_EQ(made.value()[0].first, base());
  EXPECT_EQ(made.value()[0].bytes, 448u);
}

TEST(registration_pieces, OfNoSlotsAreNone) {
  const auto made = registration_pieces::cut({nullptr, 0}, 64, page, gib);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made.value().count(), 0u);
}

TEST(registration_pieces, MEM_01_of_a_large_pool_are_below_the_limit) {
  // 640 GiB in slots of 12 MiB, which do not divide 64 GiB.
  const auto slot = 12 * gib / 1'024;
  const auto slots = static_cast<std::uint32_t>(640 * gib / slot);
  const auto made
    = registration_pieces::cut({base(), slots}, slot, page, 64 * gib);
  ASSERT_TRUE(made.ok()) << made.failure().text;
  EXPECT_EQ(made.value().count(), 11u);
  EXPECT_EQ(made.value().piece_bytes(), 5'461 * slot);
  EXPECT_EQ(made.value()[10].bytes, (slots - 10 * 5'461) * slot);
}

TEST(registration_pieces, MEM_01_say_when_no_piece_is_small_enough) {
  // 64 slots of 320 bytes are the fewest that end on a page.
  const auto refused
    = registration_pieces::cut({base(), 200}, 320, page, 64 * 320 - 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, ec::invalid_options);
  EXPECT_THAT(refused.failure().text, HasSubstr("64 slots of 320 bytes"));
  EXPECT_THAT(refused.failure().text, HasSubstr("options::blocks_per_chunk"));
  EXPECT_FALSE(registration_pieces::cut({base(), 200}, 320, page, 0).ok());
  const auto taken
    = registration_pieces::cut({base(), 200}, 320, page, 64 * 320);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken.value().count(), 4u);
}

/// G5, for any size of a slot: pieces are whole slots, start on a page, stay
/// below the limit and cover the pool, one behind the other, so every slot lies
/// in one.
RC_GTEST_PROP(registration_pieces, KeepEverySlotWhole, ()) {
  const auto slot = *rc::gen::inRange<std::uint64_t>(1, 300) * 64;
  const auto slots = *rc::gen::inRange<std::uint32_t>(1, 1'000);
  const auto huge = *rc::gen::element(1 * page, 16 * page);
  const auto limit = *rc::gen::inRange<std::uint64_t>(1, 2'000) * page;
  const auto made
    = registration_pieces::cut({base(), slots}, slot, huge, limit);
  if (!made) {
    // Only if several pieces are needed and 1 to P / 64 slots are too large.
    RC_ASSERT(slots * slot > limit);
    RC_ASSERT(huge / 64 * slot > limit);
    return;
  }
  const auto& pieces = made.value();
  auto* next = base();
  for (std::uint64_t i = 0; i < pieces.count(); ++i) {
    const auto [first, bytes] = pieces[i];
    RC_ASSERT(first == next);
    RC_ASSERT(static_cast<std::uint64_t>(first - base()) % huge == 0u);
    RC_ASSERT(bytes > 0u);
    RC_ASSERT(bytes <= limit);
    RC_ASSERT(bytes % slot == 0u);
    next += bytes;
  }
  RC_ASSERT(next == base() + slots * slot);
}

} // namespace
} // namespace kvtide::gpu
