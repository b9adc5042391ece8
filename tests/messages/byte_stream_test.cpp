// SPDX-License-Identifier: Apache-2.0

#include "messages/byte_stream.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace kvtide {
namespace {

constexpr auto most = std::numeric_limits<std::uint64_t>::max();
constexpr auto most_32 = std::numeric_limits<std::uint32_t>::max();

TEST(ByteStream, NumbersTakeABytePerSevenBits) {
  for (const auto x : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128},
                       std::uint64_t{1} << 35, most}) {
    std::string bytes;
    byte_writer{bytes}.number(x);
    const auto expected = x < 128 ? 1u : x == 128 ? 2u : x == most ? 10u : 6u;
    EXPECT_EQ(bytes.size(), expected);
    auto in = byte_reader{bytes};
    EXPECT_EQ(in.number(), x);
    EXPECT_FALSE(in.failed());
    EXPECT_EQ(in.remaining(), 0u);
  }
}

TEST(ByteStream, NumbersNearTheExpectedOneTakeAByte) {
  for (const auto x : {std::uint32_t{0}, std::uint32_t{1}, most_32}) {
    std::string bytes;
    auto out = byte_writer{bytes};
    out.near(x, std::uint32_t{0});
    EXPECT_EQ(bytes.size(), 1u); // The largest one is -1 off.
    auto in = byte_reader{bytes};
    EXPECT_EQ(in.near(std::uint32_t{0}), x);
  }
  std::string bytes;
  byte_writer{bytes}.near(most / 2 + 1, std::uint64_t{0}); // The farthest one.
  EXPECT_EQ(byte_reader{bytes}.near(std::uint64_t{0}), most / 2 + 1);
}

TEST(ByteStream, ANumberTooWideForItsPlaceFails) {
  std::string bytes;
  byte_writer{bytes}.number(std::uint64_t{1} << 32);
  auto in = byte_reader{bytes};
  in.near(std::uint32_t{0});
  EXPECT_TRUE(in.failed());
  auto eleven = byte_reader{"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02"};
  eleven.number(); // 65 bits.
  EXPECT_TRUE(eleven.failed());
}

TEST(ByteStream, WhatIsMissingIsZeroAndAFailure) {
  auto in = byte_reader{"\x81"}; // Says that more follows.
  EXPECT_EQ(in.number(), 0u);
  EXPECT_TRUE(in.failed());
  EXPECT_EQ(in.byte(), 0u);
  EXPECT_EQ(in.fixed(), 0u);
  EXPECT_EQ(in.raw(0), nullptr);
  EXPECT_EQ(in.remaining(), 0u);
}

TEST(ByteStream, NoMoreIsCountedThanCanFollow) {
  auto enough = byte_reader{std::string_view{"\x02____", 5}};
  EXPECT_EQ(enough.count(2), 2u);
  auto short_by_one = byte_reader{std::string_view{"\x02___", 4}};
  EXPECT_EQ(short_by_one.count(2), 0u);
  EXPECT_TRUE(short_by_one.failed());
}

TEST(ByteStream, PackedNumbersTakeTheirBits) {
  for (int width = 1; width <= 32; ++width) {
    const auto top
      = static_cast<std::uint32_t>((std::uint64_t{1} << width) - 1);
    std::string bytes;
    auto out = byte_writer{bytes};
    auto put = bit_writer{out, width};
    for (std::uint32_t i = 0; i < 9; ++i)
      put.put(i % 3 == 0 ? top : (top / 3) & (i * 0x9E3779B9U));
    put.close();
    EXPECT_EQ(bytes.size(), (9u * static_cast<unsigned>(width) + 7) / 8);
    auto in = byte_reader{bytes};
    auto get = bit_reader{in, width};
    for (std::uint32_t i = 0; i < 9; ++i)
      ASSERT_EQ(get.get(), i % 3 == 0 ? top : (top / 3) & (i * 0x9E3779B9U));
    EXPECT_FALSE(in.failed());
    EXPECT_EQ(in.remaining(), 0u);
    get.get();
    EXPECT_EQ(in.failed(), width > 4); // Else the last byte has room for it.
  }
}

} // namespace
} // namespace kvtide
