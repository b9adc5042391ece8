// SPDX-License-Identifier: Apache-2.0

#include "gpu/host_memory.hpp"
#include "gpu/memory_limits.hpp"
#include "gpu/parallel_fault.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace kvtide::gpu {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

/// How many pages of a range the kernel has found.
std::uint64_t pages_found(std::byte* data, std::uint64_t bytes) {
  const auto page = base_page_bytes();
  std::vector<unsigned char> found((bytes + page - 1) / page);
  EXPECT_EQ(::mincore(data, bytes, found.data()), 0);
  return static_cast<std::uint64_t>(
    std::count_if(found.begin(), found.end(), [](auto x) { return x & 1; }));
}

/// Bytes of memory that the kernel holds for the file behind a mapping, if it
/// lets this process see that.
std::optional<std::uint64_t> bytes_behind(const host_memory& memory) {
  std::array<char, 80> name{};
  const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
  std::snprintf(name.data(), name.size(),
                "/proc/self/map_files/%" PRIxPTR "-%" PRIxPTR, first,
                first + memory.facts().mapped_bytes);
  struct ::stat facts {};
  if (::stat(name.data(), &facts) != 0)
    return {};
  return static_cast<std::uint64_t>(facts.st_blocks) * 512;
}

TEST(host_memory, IsZeroedAndWritable) {
  for (const auto reserve : {false, true}) {
    for (const auto prefault : {false, true}) {
      host_memory_options opts;
      opts.prefault = prefault;
      opts.reserve = reserve;
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
  for (const auto reserve : {false, true}) {
    host_memory_options opts;
    opts.reserve = reserve;
    auto made = host_memory::map(1u << 20, opts);
    ASSERT_TRUE(made.ok()) << made.failure().text;
    const auto flags = flags_of(made.value().data());
    if (flags.empty())
      GTEST_SKIP() << "this kernel does not show mapping flags";
    EXPECT_THAT(flags, HasSubstr(" dc ")); // "Do not copy on fork".
  }
}

TEST(host_memory, IsOfTheSizeThatWasAskedFor) {
  for (const auto reserve : {false, true}) {
    host_memory_options opts;
    opts.reserve = reserve;
    const auto made = host_memory::map(100'001, opts);
    ASSERT_TRUE(made.ok()) << made.failure().text;
    const auto& facts = made.value().facts();
    EXPECT_EQ(facts.bytes, 100'001u);
    EXPECT_EQ(facts.page_bytes, base_page_bytes());
    EXPECT_EQ(facts.mapped_bytes % facts.page_bytes, 0u);
    EXPECT_LT(facts.mapped_bytes - facts.bytes, facts.page_bytes);
    EXPECT_EQ(facts.reserved, reserve);
    EXPECT_THAT(facts.notes, IsEmpty());
    EXPECT_EQ(facts.numa_node, std::nullopt);
  }
}

TEST(host_memory, ThatIsReservedIsThereBeforeItIsTouched) {
  host_memory_options opts;
  opts.reserve = true;
  const auto made = host_memory::map(3u << 20, opts);
  ASSERT_TRUE(made.ok()) << made.failure().text;
  const auto there = bytes_behind(made.value());
  if (!there)
    GTEST_SKIP() << "only privileged processes can see this";
  EXPECT_EQ(*there, 3u << 20);
}

TEST(host_memory, ThatIsPrefaultedIsTouchedToItsEnd) {
  for (const auto reserve : {false, true}) {
    host_memory_options opts;
    opts.prefault = true;
    opts.prefault_threads = 3;
    opts.reserve = reserve;
    // One byte into a third share.
    const auto made = host_memory::map(2 * fault_share + 1, opts);
    ASSERT_TRUE(made.ok()) << made.failure().text;
    EXPECT_TRUE(made.value().facts().reserved);
    EXPECT_EQ(pages_found(made.value().data(), made.value().bytes()),
              2 * fault_share / base_page_bytes() + 1);
  }
}

TEST(host_memory, ThatIsNotPrefaultedIsNotTouched) {
  const auto made = host_memory::map(1u << 20);
  ASSERT_TRUE(made.ok());
  EXPECT_FALSE(made.value().facts().reserved);
  EXPECT_EQ(pages_found(made.value().data(), 1u << 20), 0u);
}

TEST(host_memory, ThatIsNotThereCannotBeReserved) {
  host_memory_options opts;
  opts.reserve = true;
  // Some of it is always in use.
  const auto made = host_memory::map(physical_memory_bytes(), opts);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.failure().code, ec::out_of_memory);
  EXPECT_THAT(made.failure().text,
              AnyOf(HasSubstr("MemAvailable"), HasSubstr("memory.max")));
  EXPECT_THAT(made.failure().text, HasSubstr("lower host_bytes"));
}

/// Memory that is reserved is a file to the kernel, which ends a process that
/// makes a file larger than it may be.
TEST(host_memory, SaysWhenALimitOnFilesIsInTheWay) {
  ::rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto lowered = before;
  lowered.rlim_cur = 1u << 20;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &lowered), 0);
  host_memory_options opts;
  opts.reserve = true;
  const auto fits = host_memory::map(1u << 20, opts);
  const auto refused = host_memory::map((1u << 20) + 1, opts);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(fits.ok());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.failure().text, HasSubstr("ulimit -f"));
}

TEST(host_memory, IsInHugePagesOrSaysHowManyToSetAside) {
  host_memory_options opts;
  opts.huge_pages = huge_page_use::if_available;
  opts.prefault = true;
  auto made = host_memory::map(100'001, opts);
  ASSERT_TRUE(made.ok()) << made.failure().text;
  auto& memory = made.value();
  const auto& facts = memory.facts();
  memory.data()[100'000] = std::byte{1};
  EXPECT_EQ(facts.bytes, 100'001u); // Whatever was rounded up.
  EXPECT_TRUE(facts.reserved);
  if (facts.page_bytes > base_page_bytes()) {
    EXPECT_EQ(facts.mapped_bytes, facts.page_bytes);
    EXPECT_THAT(facts.notes, IsEmpty());
    return;
  }
  ASSERT_EQ(facts.notes.size(), 1u);
  EXPECT_THAT(facts.notes[0], HasSubstr("ordinary pages"));
  if (huge_pages_here().page_bytes > 0) {
    EXPECT_THAT(facts.notes[0], HasSubstr("takes 1 pages of"));
    EXPECT_THAT(facts.notes[0], HasSubstr("nr_hugepages"));
  }
}

TEST(host_memory, RefusesHugePagesThatAreRequiredAndNotThere) {
  host_memory_options opts;
  opts.huge_pages = huge_page_use::required;
  opts.limit_bytes = std::numeric_limits<std::uint64_t>::max();
  // More than a machine has, in pages of any size.
  const auto made = host_memory::map(std::uint64_t{1} << 46, opts);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.failure().code, ec::out_of_memory);
  EXPECT_THAT(made.failure().text, HasSubstr("not enough huge pages"));
}

/// On a machine with two nodes.
TEST(host_memory, ChoosesItsNodeBeforeItsFirstPage) {
  for (const auto reserve : {false, true}) {
    std::uint64_t bound = 0;
    auto found = std::uint64_t{1};
    numa_system machine;
    machine.nodes = {0, 1};
    machine.free_bytes = [](int, std::uint64_t) { return std::nullopt; };
    machine.prefer = [&](std::byte* data, std::uint64_t bytes, int node) {
      EXPECT_EQ(node, 1);
      bound = bytes;
      found = pages_found(data, bytes);
      return 0;
    };
    host_memory_options opts;
    opts.reserve = reserve;
    opts.prefault = true;
    opts.numa_node = 1;
    opts.machine = &machine;
    const auto made = host_memory::map(100'001, opts);
    ASSERT_TRUE(made.ok()) << made.failure().text;
    EXPECT_EQ(bound, made.value().facts().mapped_bytes);
    EXPECT_EQ(found, 0u);
    EXPECT_EQ(made.value().facts().numa_node, 1);
    EXPECT_THAT(made.value().facts().notes, IsEmpty());
  }
}

TEST(host_memory, IsThereWithANoteIfItsNodeIsRefused) {
  numa_system machine;
  machine.nodes = {0, 1};
  machine.free_bytes = [](int, std::uint64_t) { return std::nullopt; };
  machine.prefer = [](std::byte*, std::uint64_t, int) { return EPERM; };
  host_memory_options opts;
  opts.numa_node = 1;
  opts.machine = &machine;
  const auto made = host_memory::map(4'096, opts);
  ASSERT_TRUE(made.ok()) << made.failure().text;
  EXPECT_EQ(made.value().facts().numa_node, std::nullopt);
  ASSERT_EQ(made.value().facts().notes.size(), 1u);
  EXPECT_THAT(made.value().facts().notes[0], HasSubstr("NUMA node 1"));
}

/// The call itself, wherever this runs: chosen, or left alone without a choice,
/// or refused with a note.
TEST(host_memory, AsksThisMachineForANode) {
  const auto machine = this_numa_system();
  host_memory_options opts;
  opts.numa_node = machine.nodes.empty() ? 0 : machine.nodes.back();
  auto made = host_memory::map(100'000, opts);
  ASSERT_TRUE(made.ok()) << made.failure().text;
  made.value().data()[99'999] = std::byte{1};
  const auto& facts = made.value().facts();
  if (machine.nodes.size() < 2) {
    EXPECT_EQ(facts.numa_node, std::nullopt);
    EXPECT_THAT(facts.notes, IsEmpty());
  } else {
    EXPECT_TRUE(facts.numa_node || !facts.notes.empty());
  }
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
  EXPECT_THAT(made.failure().text, HasSubstr("lower host_bytes"));
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
