// SPDX-License-Identifier: Apache-2.0

#include "core/job_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <set>

using ::testing::ElementsAre;

namespace kvtide::core {
namespace {

using effect = job_table::effect;

job store_of(std::vector<std::vector<block_id>> chunks) {
  auto rows = std::vector<job_row>{};
  for (auto& blocks : chunks) {
    const auto number = static_cast<std::uint32_t>(rows.size());
    rows.push_back({{}, number + 10, number, std::move(blocks)});
  }
  return {0, job_kind::store, 0, std::move(rows)};
}

job load_of(std::vector<std::vector<block_id>> chunks) {
  auto out = store_of(std::move(chunks));
  out.kind = job_kind::load;
  return out;
}

TEST(JobTable, CountsIdsUpForLoadsAndStoresTogether) {
  auto jobs = job_table{1};
  EXPECT_EQ(jobs.add(store_of({{1}})).work.id, 0u);
  EXPECT_EQ(jobs.add(load_of({{2}})).work.id, 1u);
  EXPECT_EQ(jobs.skip_id(), 2u);
  EXPECT_EQ(jobs.next_id(), 3u);
  EXPECT_EQ(jobs.find(2), nullptr);
  EXPECT_EQ(jobs.running(), 2u);
  EXPECT_EQ(jobs.running_stores(), 1u);
}

TEST(JobTable, NamesBlocksWithoutHoles) {
  auto jobs = job_table{1};
  const auto& entry = jobs.add(store_of({{0, 5}, {6, 0}}));
  EXPECT_THAT(entry.blocks(), ElementsAre(5u, 6u));
  EXPECT_THAT(entry.slots(), ElementsAre(10u, 11u));
}

// AGG-01
TEST(JobTable, SettlesAJobWithTheLastRank) {
  auto jobs = job_table{4};
  jobs.add(store_of({{1}}));
  EXPECT_EQ(jobs.report(0, 2, job_status::done, 0), effect::counted);
  EXPECT_EQ(jobs.report(0, 0, job_status::done, 0), effect::counted);
  EXPECT_EQ(jobs.report(0, 3, job_status::done, 0), effect::counted);
  EXPECT_EQ(jobs.running(), 1u);
  EXPECT_EQ(jobs.report(0, 1, job_status::done, 0), effect::settled);
  EXPECT_TRUE(jobs.find(0)->ok());
  EXPECT_EQ(jobs.running(), 0u);
  jobs.erase(0);
  EXPECT_EQ(jobs.find(0), nullptr);
}

// R10
TEST(JobTable, IgnoresUnknownRepeatedAndExcessReports) {
  auto jobs = job_table{2};
  jobs.add(store_of({{1}}));
  EXPECT_EQ(jobs.report(1, 0, job_status::done, 0), effect::ignored);
  EXPECT_EQ(jobs.report(0, 2, job_status::done, 0), effect::ignored);
  EXPECT_EQ(jobs.report(0, 0, job_status::done, 0), effect::counted);
  EXPECT_EQ(jobs.report(0, 0, job_status::done, 0), effect::ignored);
  EXPECT_EQ(jobs.report(0, 0, job_status::failed, 0), effect::ignored);
  EXPECT_EQ(jobs.report(0, 0, job_status::drained, 0), effect::ignored);
  EXPECT_EQ(jobs.report(0, 1, job_status::done, 0), effect::settled);
  EXPECT_TRUE(jobs.find(0)->ok());
}

TEST(JobTable, TakesTheFirstFailedRowOverAllRanks) {
  auto jobs = job_table{3};
  jobs.add(load_of({{1}, {2}, {3}}));
  (void)jobs.report(0, 0, job_status::failed, 2);
  (void)jobs.report(0, 1, job_status::done, 0);
  EXPECT_EQ(jobs.report(0, 2, job_status::failed, 1), effect::settled);
  EXPECT_FALSE(jobs.find(0)->ok());
  EXPECT_EQ(jobs.find(0)->first_failed_row, 1u);
}

// S9
TEST(JobTable, KeepsALateJobUntilItsCopiesEnded) {
  auto jobs = job_table{2};
  jobs.add(load_of({{1}}));
  EXPECT_EQ(jobs.report(0, 0, job_status::late, 0), effect::counted);
  EXPECT_EQ(jobs.report(0, 1, job_status::late, 0), effect::settled);
  EXPECT_EQ(std::popcount(jobs.find(0)->late), 2);
  EXPECT_EQ(jobs.report(0, 0, job_status::done, 0), effect::ignored);
  EXPECT_EQ(jobs.report(0, 0, job_status::drained, 0), effect::counted);
  EXPECT_EQ(jobs.report(0, 0, job_status::drained, 0), effect::ignored);
  EXPECT_EQ(jobs.report(0, 1, job_status::drained, 0), effect::drained);
}

TEST(JobTable, ALateCopyThatEndsBeforeTheOutcomeIsNotLateAnyMore) {
  auto jobs = job_table{2};
  jobs.add(load_of({{1}}));
  (void)jobs.report(0, 0, job_status::late, 0);
  EXPECT_EQ(jobs.report(0, 0, job_status::drained, 0), effect::counted);
  EXPECT_EQ(jobs.report(0, 1, job_status::done, 0), effect::settled);
  EXPECT_EQ(jobs.find(0)->late, 0u);
  EXPECT_FALSE(jobs.find(0)->ok());
}

TEST(JobTable, ForgetsByMarkingStale) {
  auto jobs = job_table{1};
  jobs.add(store_of({{1}}));
  jobs.forget_all();
  jobs.add(store_of({{2}}));
  EXPECT_TRUE(jobs.find(0)->stale);
  EXPECT_FALSE(jobs.find(1)->stale);
  EXPECT_EQ(jobs.report(0, 0, job_status::done, 0), effect::settled);
}

// S9: whatever comes, in whatever order.
RC_GTEST_PROP(JobTable, GivesEachJobExactlyOneOutcome, ()) {
  const auto ranks = *rc::gen::inRange<rank_id>(1, 5);
  auto jobs = job_table{ranks};
  jobs.add(store_of({{1}}));
  auto settled = 0;
  auto drained = 0;
  auto heard = std::set<rank_id>{};
  for (auto i = 0; i < 40; ++i) {
    const auto rank = *rc::gen::inRange<rank_id>(0, ranks + 1);
    const auto status = static_cast<job_status>(*rc::gen::inRange(0, 4));
    const auto got = jobs.report(0, rank, status, 0);
    settled += got == effect::settled;
    drained += got == effect::drained;
    if (rank < ranks && status != job_status::drained)
      heard.insert(rank);
    RC_ASSERT((settled == 1) == (heard.size() == ranks));
    RC_ASSERT(settled <= 1 && drained <= settled);
  }
}

TEST(JobTable, FailsAsAWholeIfTheFailedRowIsUnknown) {
  for (auto row : {2u, tracked_job::no_row}) {
    auto jobs = job_table{1};
    jobs.add(store_of({{1}, {2}}));
    EXPECT_EQ(jobs.report(0, 0, job_status::failed, row), effect::settled);
    EXPECT_FALSE(jobs.find(0)->ok());
    EXPECT_EQ(jobs.find(0)->first_failed_row, 0u);
  }
}

TEST(JobTable, SaysBelowWhichIdAllJobsAreSettled) {
  auto uut = job_table{1};
  EXPECT_EQ(uut.settled_below(), 0u);
  for (auto i = 0; i < 3; ++i)
    uut.add({});
  EXPECT_EQ(uut.settled_below(), 0u);
  // A late copy holds nobody up.
  EXPECT_EQ(uut.report(0, 0, job_status::late, 0), job_table::effect::settled);
  EXPECT_EQ(uut.settled_below(), 1u);
  EXPECT_EQ(uut.report(2, 0, job_status::done, 0), job_table::effect::settled);
  EXPECT_EQ(uut.settled_below(), 1u);
  EXPECT_EQ(uut.report(1, 0, job_status::done, 0), job_table::effect::settled);
  EXPECT_EQ(uut.settled_below(), 3u);
}

} // namespace
} // namespace kvtide::core
