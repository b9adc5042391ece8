// SPDX-License-Identifier: Apache-2.0

#include "gpu/host_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

namespace kvtide::gpu {
namespace {

using ::testing::HasSubstr;

/// The flags that the kernel keeps for the mapping that holds `address`.
std::string flags_of(const void* address) {
  std::ifstream maps{"/proc/self/smaps"};
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  auto inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0;
    std::uintptr_t last = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &first, &last)
        == 2)
      inside = first <= wanted && wanted < last;
    else if (inside && line.rfind("VmFlags:", 0) == 0)
      return line + ' ';
  }
  return {};
}

TEST(host_memory, IsZeroedAndWritable) {
  for (const auto prefault : {false, true}) {
    host_memory_options opts;
    opts.prefault = prefault;
    auto made = host_memory::map(100'000, opts);
    ASSERT_TRUE(made.ok()) << made.failure().text;
    auto& memory = made.value();
    ASSERT_EQ(memory.bytes(), 100'000u);
    EXPECT_TRUE(std::all_of(memory.data(), memory.data() + memory.bytes(),
                            [](std::byte x) { return x == std::byte{0}; }));
    memory.data()[99'999] = std::byte{7};
    EXPECT_EQ(memory.data()[99'999], std::byte{7});
  }
}

TEST(host_memory, OfZeroBytesIsEmpty) {
  auto made = host_memory::map(0);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made.value().data(), nullptr);
  EXPECT_EQ(made.value().bytes(), 0u);
}

TEST(host_memory, MovesWithItsOwner) {
  auto made = host_memory::map(4'096);
  ASSERT_TRUE(made.ok());
  auto* data = made.value().data();
  auto memory = std::move(made).value();
  EXPECT_EQ(memory.data(), data);
  host_memory other;
  other = std::move(memory);
  EXPECT_EQ(other.data(), data);
  other.data()[4'095] = std::byte{1};
}

TEST(host_memory, IsNotInheritedByChildren) {
  auto made = host_memory::map(1u << 20);
  ASSERT_TRUE(made.ok());
  const auto flags = flags_of(made.value().data());
  if (flags.empty())
    GTEST_SKIP() << "this kernel does not show mapping flags";
  EXPECT_THAT(flags, HasSubstr(" dc ")); // "Do not copy on fork".
}

TEST(host_memory, SaysHowMuchWasAskedAndHowMuchThereIs) {
  const auto physical = physical_memory_bytes();
  ASSERT_GT(physical, 0u);
  const auto made = host_memory::map(physical + 1);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.failure().code, ec::out_of_memory);
  EXPECT_THAT(made.failure().text, HasSubstr(std::to_string(physical + 1)));
  EXPECT_THAT(made.failure().text,
              HasSubstr("the machine has " + std::to_string(physical)));
  EXPECT_THAT(made.failure().text, HasSubstr("lower options::host_bytes"));
}

TEST(host_memory, SaysWhenTheSystemRefuses) {
  host_memory_options opts;
  opts.limit_bytes = std::numeric_limits<std::uint64_t>::max();
  const auto made = host_memory::map(std::uint64_t{1} << 62, opts);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.failure().code, ec::out_of_memory);
  EXPECT_THAT(made.failure().text, HasSubstr("4611686018427387904 bytes"));
  EXPECT_THAT(made.failure().text, HasSubstr("the system says"));
}

} // namespace
} // namespace kvtide::gpu
