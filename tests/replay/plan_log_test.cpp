// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/plan_log.hpp"
#include "examples/replay/replay_failure.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

namespace kvtide::replay {
namespace {

step_plan make_plan() {
  auto res = step_plan{};
  res.step = 12;
  auto row = job_row{};
  row.key.group = 1;
  row.key.hash = prefix_hash{"\x01\xab", 2};
  row.slot = 17;
  row.chunk = 2;
  row.blocks = {5, 6, no_block};
  res.loads.push_back({4, job_kind::load, 9, std::vector<job_row>{row}});
  res.stores.push_back({7, job_kind::store, 8, std::vector<job_row>{}});
  res.flush = {3, 4};
  return res;
}

TEST(PlanLog, SaysAllOfAPlanInOneLine) {
  EXPECT_EQ(to_text(make_plan()),
            "step 12; load 4 of 9, chunk 1:2 slot 17 key 01ab blocks 5 6 0; "
            "store 7 of 8; flush 3 4");
  EXPECT_EQ(to_text(step_plan{}), "step 0");
}

TEST(PlanLog, WritesALinePerStep) {
  const auto path
    = ::testing::TempDir() + "kvtide-plans-" + std::to_string(getpid());
  auto uut = plan_log{path};
  uut.note(step_plan{});
  uut.note(make_plan());
  uut.close();
  auto text = std::ostringstream{};
  text << std::ifstream{path}.rdbuf();
  EXPECT_EQ(text.str(), "step 0\n" + to_text(make_plan()) + "\n");
  unlink(path.c_str());
}

TEST(PlanLog, SaysWhenItCannotWrite) {
  EXPECT_THROW(plan_log{"/no/such/folder/file"}, bad_configuration);
  auto none = plan_log{""};
  none.note(make_plan());
  EXPECT_NO_THROW(none.close());
}

} // namespace
} // namespace kvtide::replay
