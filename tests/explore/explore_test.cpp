// SPDX-License-Identifier: Apache-2.0

/// @file
/// The explorer itself: equal seeds give equal runs, a failure shrinks to what
/// matters, and an exhaustive search skips only what is the same.

#include "tests/explore/run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using ::testing::SizeIs;

namespace kvtide::explore {
namespace {

const scenario& named(const char* name) {
  return *find_scenario(name);
}

TEST(Choices, are_written_and_read) {
  auto picks = schedule{};
  EXPECT_TRUE(from_text("3:1 17:2", picks));
  EXPECT_THAT(picks, SizeIs(18));
  EXPECT_EQ(to_text(picks), "3:1 17:2");
  EXPECT_FALSE(from_text("3", picks));
  EXPECT_FALSE(from_text("3:x", picks));
  EXPECT_FALSE(from_text("99999999999:1", picks));
}

TEST(Explorer, has_at_least_twelve_scenarios_with_names_of_their_own) {
  auto names = std::set<std::string>{};
  for (const auto& x : all_scenarios())
    names.insert(x.name);
  EXPECT_GE(names.size(), 12u);
  EXPECT_EQ(names.size(), all_scenarios().size());
}

TEST(Explorer, runs_the_same_schedule_for_the_same_seed) {
  for (const auto& what : all_scenarios()) {
    auto first = random_chooser{7};
    auto second = random_chooser{7};
    EXPECT_EQ(run(what, first, true).trace, run(what, second, true).trace)
      << what.name;
  }
}

TEST(Explorer, follows_the_choices_of_a_run) {
  auto next = random_chooser{11};
  const auto seen = run(named("tiny_device"), next, true);
  auto again = scripted_chooser{seen.picks};
  EXPECT_EQ(run(named("tiny_device"), again, true).trace, seen.trace);
}

/// Fails as soon as two things happened that the plain schedule does not do.
void fail_after_two(world& seen, std::size_t) {
  const auto& picks = seen.past().picks;
  if (std::count_if(picks.begin(), picks.end(), [](auto x) { return x > 0; })
      >= 2)
    seen.all_findings().report("S0", "two picks are not plain");
}

TEST(Explorer, shrinks_a_failure_to_the_choices_that_matter) {
  auto next = random_chooser{3};
  const auto seen = run(named("plain"), next, false, fail_after_two);
  ASSERT_TRUE(seen.found);
  const auto fewer
    = shrink(named("plain"), seen.picks, "S0", 1'000, fail_after_two);
  EXPECT_EQ(
    std::count_if(fewer.begin(), fewer.end(), [](auto x) { return x > 0; }), 2);
}

TEST(Explorer, searches_all_schedules_with_one_deviation) {
  const auto result = search_all(named("two_ranks"), 1, 100'000,
                                 [](std::size_t) { return true; });
  EXPECT_TRUE(result.complete);
  EXPECT_FALSE(result.failing);
  EXPECT_GT(result.runs, 100u);
  EXPECT_GT(result.skipped, 0u);
}

} // namespace
} // namespace kvtide::explore
