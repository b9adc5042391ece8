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
  const auto& what = GetParam();
  auto sum = stats{};
  const auto swept
    = run_seeds(what, 1, seeds, [&](const outcome& seen, std::uint64_t) {
        sum.load_jobs += seen.counted->load_jobs;
        sum.flushed_jobs += seen.counted->flushed_jobs;
        sum.evicted_chunks += seen.counted->evicted_chunks;
        sum.deferrals += seen.counted->deferrals;
        sum.failed_jobs += seen.counted->failed_jobs;
        sum.resets += seen.counted->resets;
        return true;
      });
  ASSERT_FALSE(swept.broken)
    << swept.broken->found->rule << ": " << swept.broken->found->text
    << "\n  kvtide-explore --scenario " << what.name << " --seed " << swept.seed
    << " --trace";
  std::cout << "schedules=" << swept.runs
            << " distinct=" << swept.distinct.size()
            << " loads=" << sum.load_jobs << " flushed=" << sum.flushed_jobs
            << " evicted=" << sum.evicted_chunks
            << " deferrals=" << sum.deferrals << " failed=" << sum.failed_jobs
            << " resets=" << sum.resets << '\n';
  RecordProperty("distinct", std::to_string(swept.distinct.size()));
  EXPECT_GT(swept.distinct.size(), seeds / 2) << "seeds repeat each other";
  // What the scenario is there for has happened, and nothing else.
  EXPECT_GT(sum.load_jobs, 0u);
  EXPECT_GT(sum.flushed_jobs, 0u);
  EXPECT_GT(sum.deferrals, 0u);
  EXPECT_EQ(sum.evicted_chunks > 0, what.slots < 64);
  if (what.sleeps == 0) { // A sleep may leave loads without a step.
    EXPECT_EQ(sum.failed_jobs > 0,
              what.copy_failures + what.deadlines + what.rank_deaths + what.cuts
                > 0);
  }
  EXPECT_EQ(sum.resets > 0, what.resets > 0);
}

// So the check can fail: the recorded rules let blocks be reused too early.
TEST(RecordedRules, break_in_some_schedule) {
  auto what = *find_scenario("tiny_device");
  what.opts.rules = rule_set::reference;
  const auto swept = run_seeds(
    what, 1, seeds, [](const outcome&, std::uint64_t) { return true; });
  EXPECT_TRUE(swept.broken);
}

} // namespace
} // namespace kvtide::explore
