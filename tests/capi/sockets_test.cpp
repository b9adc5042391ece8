// SPDX-License-Identifier: Apache-2.0

/// @file
/// A runtime of one process talks to nobody else.

#include "tests/capi/c_world.hpp"

#include <filesystem>
#include <set>
#include <string>

namespace kvtide::test {
namespace {

/// The sockets that this process has open.
std::set<std::string> sockets() {
  auto out = std::set<std::string>{};
  for (const auto& entry :
       std::filesystem::directory_iterator{"/proc/self/fd"}) {
    auto failed = std::error_code{};
    const auto link = std::filesystem::read_symlink(entry.path(), failed);
    if (!failed && link.string().rfind("socket:", 0) == 0)
      out.insert(link.string());
  }
  return out;
}

class CSockets : public CWorld {};

TEST_F(CSockets, AreNotOpenedByARuntimeThatServes) {
  const auto before = sockets();
  ASSERT_NO_FATAL_FAILURE(serve());
  add(1, 13, 3);
  const std::uint32_t ids[] = {1, 2, 3, 4};
  const auto table = kvtide_block_list{ids, 4};
  run_step({row(1, 0, 13, table)});
  while (only(run_step({})).as.step_plan.pending_work != 0) {}
  EXPECT_EQ(sockets(), before);
}

} // namespace
} // namespace kvtide::test
