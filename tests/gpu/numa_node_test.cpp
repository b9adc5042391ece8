// SPDX-License-Identifier: Apache-2.0

#include "gpu/memory_limits.hpp"
#include "gpu/numa_node.hpp"
#include "tests/gpu/scratch_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kvtide::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// A machine that notes what is asked of it.
class numa_node : public ::testing::Test {
protected:
  numa_node() {
    machine_.nodes = {0, 2};
    machine_.free_bytes = [this](int, std::uint64_t) { return free_; };
    machine_.prefer = [this](std::byte*, std::uint64_t, int node) {
      asked_.push_back(node);
      return answer_;
    };
  }

  node_choice choose(int node) {
    return choose_node(&byte_, 10 * mib, base_page_bytes(), node, machine_);
  }

  std::byte byte_{};
  numa_system machine_;
  std::optional<std::uint64_t> free_;
  std::vector<int> asked_;
  int answer_ = 0;
};

TEST_F(numa_node, IsChosenOnAMachineWithSeveral) {
  const auto choice = choose(2);
  EXPECT_EQ(choice.node, 2);
  EXPECT_THAT(choice.note, IsEmpty());
  EXPECT_THAT(asked_, ElementsAre(2));
}

TEST_F(numa_node, IsLeftAloneOnAMachineWithoutAChoice) {
  for (const auto& nodes : {std::vector<int>{0}, std::vector<int>{}}) {
    machine_.nodes = nodes;
    const auto choice = choose(0);
    EXPECT_EQ(choice.node, std::nullopt);
    EXPECT_THAT(choice.note, IsEmpty());
  }
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(numa_node, ThatIsNotThereIsANote) {
  const auto choice = choose(1);
  EXPECT_EQ(choice.node, std::nullopt);
  EXPECT_THAT(choice.note, HasSubstr("not on NUMA node 1"));
  EXPECT_THAT(choice.note, HasSubstr("has_memory"));
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(numa_node, ThatIsRefusedIsANoteThatSaysWhatToChange) {
  answer_ = EPERM;
  auto choice = choose(0);
  EXPECT_EQ(choice.node, std::nullopt);
  EXPECT_THAT(choice.note, HasSubstr("not bound to NUMA node 0"));
  EXPECT_THAT(choice.note, HasSubstr("SYS_NICE"));
  answer_ = ENOSYS;
  EXPECT_THAT(choose(0).note, HasSubstr("libnuma-dev"));
  answer_ = EINVAL;
  EXPECT_THAT(choose(0).note, HasSubstr("numactl"));
}

TEST_F(numa_node, WithTooLittleFreeIsChosenAndSaysHowMuchIsElsewhere) {
  free_ = 4 * mib;
  const auto choice = choose(0);
  EXPECT_EQ(choice.node, 0);
  EXPECT_THAT(choice.note, HasSubstr("4194304 bytes (4 MiB) free"));
  EXPECT_THAT(choice.note, HasSubstr("6291456 bytes (6 MiB)"));
  free_ = 10 * mib;
  EXPECT_THAT(choose(0).note, IsEmpty());
}

TEST(numa_system, ReadsNodesAndWhatIsFreeThere) {
  const scratch_tree tree;
  EXPECT_THAT(this_numa_system(tree.root()).nodes, IsEmpty());
  tree.write("/sys/devices/system/node/has_memory", "0-1,4\n");
  tree.write("/sys/devices/system/node/node4/meminfo",
             "Node 4 MemTotal:  900 kB\nNode 4 MemFree:   300 kB\n");
  tree.write("/sys/devices/system/node/node4/hugepages/hugepages-2048kB/"
             "free_hugepages",
             "3\n");
  const auto machine = this_numa_system(tree.root());
  EXPECT_THAT(machine.nodes, ElementsAre(0, 1, 4));
  EXPECT_EQ(machine.free_bytes(4, base_page_bytes()), 300u * 1'024);
  EXPECT_EQ(machine.free_bytes(4, 2 * mib), 6 * mib);
  EXPECT_EQ(machine.free_bytes(4, 1'024 * mib), std::nullopt);
  EXPECT_EQ(machine.free_bytes(0, base_page_bytes()), std::nullopt);
}

} // namespace
} // namespace kvtide::gpu
