// SPDX-License-Identifier: Apache-2.0

/// @file
/// A few hundred schedules of every scenario that there is; `make explore` runs
/// many more.

#include "actors/log.hpp"
#include "tests/explore/run.hpp"
#include "tests/explore/scenario_param.hpp"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <iostream>
#include <set>
#include <string>

namespace kvtide::explore {
namespace {

constexpr std::uint64_t seeds = 400;

class EveryScenario : public ::testing::TestWithParam<scenario> {
protected:
  static void SetUpTestSuite() {
    // What the runtime has to say of planned trouble is no news here.
    kvtide::log().set_level(spdlog::level::off);
  }
};

INSTANTIATE_TEST_SUITE_P(Seeds, EveryScenario,
                         ::testing::ValuesIn(all_scenarios()), name_of);

TEST_P(EveryScenario, keeps_the_rules_in_hundreds_of_schedules) {
  auto distinct = std::set<std::uint64_t>{};
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto seen = run_seed(GetParam(), seed);
    ASSERT_FALSE(seen.found)
      << seen.found->rule << ": " << seen.found->text
      << "\n  kvtide-explore --scenario " << GetParam().name << " --seed "
      << seed << " --trace";
    distinct.insert(seen.fingerprint);
  }
  std::cout << "schedules=" << seeds << " distinct=" << distinct.size() << '\n';
  RecordProperty("distinct", std::to_string(distinct.size()));
  EXPECT_GT(distinct.size(), seeds / 2) << "seeds repeat each other";
}

} // namespace
} // namespace kvtide::explore
