// SPDX-License-Identifier: Apache-2.0

/// @file
/// Every scenario with the CUDA engine on a machine without a GPU, whose halves
/// of operations are choices as well.

#include "actors/log.hpp"
#include "tests/explore/run.hpp"
#include "tests/explore/scenario_param.hpp"
#include "tests/explore/world.hpp"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace kvtide::explore {
namespace {

/// Each way to copy has several.
constexpr std::uint64_t seeds = 64;

scenario on_cuda(scenario what) {
  what.device = cuda_in_turn;
  return what;
}

std::string text_of(const sweep_result& swept, const scenario& what) {
  if (!swept.broken)
    return {};
  return swept.broken->found->rule + ": " + swept.broken->found->text
       + "\n  kvtide-explore --device cuda --scenario " + what.name + " --seed "
       + std::to_string(swept.seed) + " --trace";
}

class EveryScenarioOnCuda : public ::testing::TestWithParam<scenario> {
protected:
  static void SetUpTestSuite() {
    // What the runtime has to say of planned trouble is no news here.
    kvtide::log().set_level(spdlog::level::off);
  }
};

INSTANTIATE_TEST_SUITE_P(Seeds, EveryScenarioOnCuda,
                         ::testing::ValuesIn(all_scenarios()), name_of);

TEST_P(EveryScenarioOnCuda, keeps_the_rules_in_dozens_of_schedules) {
  const auto what = on_cuda(GetParam());
  auto sum = stats{};
  const auto swept
    = run_seeds(what, 1, seeds, [&](const outcome& seen, std::uint64_t) {
        sum.load_jobs += seen.counted->load_jobs;
        sum.flushed_jobs += seen.counted->flushed_jobs;
        sum.failed_jobs += seen.counted->failed_jobs;
        return true;
      });
  ASSERT_FALSE(swept.broken) << text_of(swept, what);
  EXPECT_GT(swept.distinct.size(), seeds / 2) << "seeds repeat each other";
  EXPECT_GT(sum.load_jobs, 0u);
  EXPECT_GT(sum.flushed_jobs, 0u);
  if (what.sleeps == 0) { // A sleep may leave loads without a step.
    EXPECT_EQ(sum.failed_jobs > 0,
              what.copy_failures + what.deadlines + what.rank_deaths + what.cuts
                > 0);
  }
}

TEST_P(EveryScenarioOnCuda, runs_the_same_schedule_for_the_same_seed) {
  for (std::uint64_t seed = 1; seed < all_copy_ways().size(); ++seed) {
    const auto what = with_device_of(on_cuda(GetParam()), seed);
    auto first = random_chooser{seed};
    auto second = random_chooser{seed};
    const auto seen = run(what, first, true);
    ASSERT_EQ(seen.trace, run(what, second, true).trace) << what.device;
    auto again = scripted_chooser{seen.picks};
    ASSERT_EQ(seen.trace, run(what, again, true).trace) << what.device;
  }
}

TEST(ExplorerOnCuda, takes_each_way_in_turn) {
  auto names = std::set<std::string>{};
  for (std::uint64_t seed = 1; seed < all_copy_ways().size(); ++seed) {
    const auto& way = copy_way_of(cuda_in_turn, seed);
    EXPECT_TRUE(way.cuda);
    names.insert(way.name);
  }
  EXPECT_EQ(names.size(), all_copy_ways().size() - 1);
}

/// Counts the runs in which a choice was made.
std::size_t runs_with(const scenario& what, choice_kind kind,
                      std::uint32_t row) {
  auto found = std::size_t{0};
  const auto swept
    = run_seeds(what, 1, seeds, [&](const outcome& seen, std::uint64_t) {
        found += std::any_of(
          seen.performed.begin(), seen.performed.end(),
          [&](const choice& x) { return x.kind == kind && x.row == row; });
        return true;
      });
  EXPECT_FALSE(swept.broken) << text_of(swept, what);
  return found;
}

TEST(ExplorerOnCuda, loses_contexts_and_the_process_lives) {
  kvtide::log().set_level(spdlog::level::off);
  EXPECT_GT(runs_with(on_cuda(*find_scenario("rank_deaths")),
                      choice_kind::rank_death, 1),
            seeds / 4);
}

TEST(ExplorerOnCuda, fails_calls_that_copy) {
  kvtide::log().set_level(spdlog::level::off);
  EXPECT_GT(runs_with(on_cuda(*find_scenario("failures")),
                      choice_kind::copy_failure, 2),
            seeds / 4);
}

} // namespace
} // namespace kvtide::explore
