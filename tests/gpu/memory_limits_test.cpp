// SPDX-License-Identifier: Apache-2.0

#include "gpu/memory_limits.hpp"
#include "tests/gpu/scratch_tree.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <sys/resource.h>

namespace kvtide::gpu {
namespace {

TEST(memory_limits, ReadsWhatIsAvailable) {
  const scratch_tree machine;
  EXPECT_EQ(available_memory_bytes(machine.root()), std::nullopt);
  machine.write("/proc/meminfo", "MemTotal:       1000 kB\n"
                                 "MemFree:         100 kB\n"
                                 "MemAvailable:    700 kB\n");
  EXPECT_EQ(available_memory_bytes(machine.root()), 700u * 1'024);
}

TEST(memory_limits, CountsHugePagesThatNobodyWasPromised) {
  const scratch_tree machine;
  EXPECT_EQ(huge_pages_here(machine.root()).page_bytes, 0u);
  machine.write("/proc/meminfo", "HugePages_Total:      10\n"
                                 "HugePages_Free:        7\n"
                                 "HugePages_Rsvd:        3\n"
                                 "Hugepagesize:       2048 kB\n");
  const auto found = huge_pages_here(machine.root());
  EXPECT_EQ(found.page_bytes, 2'048u * 1'024);
  EXPECT_EQ(found.free_pages, 4u);
}

TEST(memory_limits, TakesTheLowestControlGroupAboveAProcess) {
  const scratch_tree machine;
  EXPECT_EQ(control_group_memory_limit(machine.root()), std::nullopt);
  machine.write("/proc/self/cgroup", "0::/slice/unit\n");
  machine.write("/sys/fs/cgroup/slice/unit/memory.max", "max\n");
  EXPECT_EQ(control_group_memory_limit(machine.root()), std::nullopt);
  machine.write("/sys/fs/cgroup/slice/memory.max", "4096\n");
  EXPECT_EQ(control_group_memory_limit(machine.root()), 4'096u);
  machine.write("/sys/fs/cgroup/slice/unit/memory.max", "8192\n");
  EXPECT_EQ(control_group_memory_limit(machine.root()), 4'096u);
}

TEST(memory_limits, FindsTheLimitOfAContainerThatSeesOnlyItsOwnGroup) {
  const scratch_tree machine;
  machine.write("/proc/self/cgroup", "5:cpuset:/other\n"
                                     "4:cpu,memory:/docker/0123\n"
                                     "0::/\n");
  machine.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "65536\n");
  EXPECT_EQ(control_group_memory_limit(machine.root()), 65'536u);
  // What version 1 writes where nothing is limited.
  machine.write("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n");
  EXPECT_EQ(control_group_memory_limit(machine.root()), std::nullopt);
}

TEST(memory_limits, IgnoresLinesOfAnotherForm) {
  const scratch_tree machine;
  machine.write("/proc/self/cgroup", "\n:\n0::\n0::relative\nmemory\n");
  EXPECT_EQ(control_group_memory_limit(machine.root()), std::nullopt);
}

TEST(memory_limits, SaysTheMemoryLockLimit) {
  ::rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before), 0);
  auto lowered = before;
  lowered.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &lowered), 0);
  EXPECT_EQ(memory_lock_limit(), 0u);
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &before), 0);
  EXPECT_EQ(memory_lock_limit().has_value(), before.rlim_cur != RLIM_INFINITY);
}

TEST(memory_limits, WritesAllDigitsOfASize) {
  EXPECT_EQ(in_words(1'048'577), "1048577 bytes (1 MiB)");
}

} // namespace
} // namespace kvtide::gpu
