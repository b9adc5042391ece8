// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/job_watch.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace kvtide::replay {
namespace {

chunk_key key_of(std::uint64_t number) {
  return {prefix_hash{&number, sizeof(number)}, 0, 0};
}

job make_job(job_id id, job_kind kind, request_id request,
             std::vector<std::uint64_t> keys) {
  auto rows = std::vector<job_row>{};
  for (const auto key : keys)
    rows.push_back({key_of(key), 0, 0, {1, no_block, 2}});
  return {id, kind, request, std::move(rows)};
}

cache_event stored(std::vector<std::uint64_t> keys) {
  auto res = cache_event{};
  for (const auto key : keys)
    res.stored.push_back({key_of(key), {}, {}, 0});
  return res;
}

step_plan make_plan(step_id step) {
  auto res = step_plan{};
  res.step = step;
  return res;
}

class JobWatch : public ::testing::Test {
protected:
  tally counts;
  job_watch uut{counts, 10};
};

TEST_F(JobWatch, CountsTheBytesThatAreCopied) {
  auto plan = make_plan(1);
  plan.stores.push_back(make_job(0, job_kind::store, 1, {1, 2}));
  plan.loads.push_back(make_job(1, job_kind::load, 2, {3}));
  uut.planned(plan);
  EXPECT_EQ(counts.stored_bytes, 40u);
  EXPECT_EQ(counts.loaded_bytes, 20u);
  EXPECT_EQ(uut.stores(), 1u);
}

TEST_F(JobWatch, SeesAStoreEndWithItsLastChunk) {
  auto plan = make_plan(1);
  plan.stores.push_back(make_job(0, job_kind::store, 1, {1, 2}));
  uut.planned(plan);
  uut.heard({stored({1})}, 2);
  EXPECT_EQ(uut.stores(), 1u);
  uut.heard({stored({2, 77})}, 3);
  EXPECT_EQ(uut.stores(), 0u);
  // Submitted with step 2.
  EXPECT_EQ(counts.late_completions, 0u);
}

TEST_F(JobWatch, CountsJobsThatOutliveAStep) {
  auto plan = make_plan(1);
  plan.stores.push_back(make_job(0, job_kind::store, 1, {1}));
  plan.loads.push_back(make_job(1, job_kind::load, 2, {3}));
  uut.planned(plan);
  uut.heard({stored({1})}, 4);
  uut.load_ended(2, 3);
  uut.load_ended(2, 9);
  EXPECT_EQ(counts.late_completions, 2u);
}

TEST_F(JobWatch, CountsLoadsBesideStores) {
  auto plan = make_plan(1);
  plan.loads.push_back(make_job(0, job_kind::load, 1, {1}));
  plan.stores.push_back(make_job(1, job_kind::store, 2, {2}));
  uut.planned(plan);
  EXPECT_EQ(counts.loads_overlapping_stores, 0u);
  plan = make_plan(2);
  plan.loads.push_back(make_job(2, job_kind::load, 3, {3}));
  uut.planned(plan);
  EXPECT_EQ(counts.loads_overlapping_stores, 1u);
}

TEST_F(JobWatch, CountsWhatIsInFlightAtAFlush) {
  auto plan = make_plan(1);
  plan.loads.push_back(make_job(0, job_kind::load, 1, {1}));
  plan.stores.push_back(make_job(1, job_kind::store, 2, {2}));
  uut.planned(plan);
  plan = make_plan(2);
  plan.flush = {1};
  uut.planned(plan);
  EXPECT_EQ(counts.flush_steps, 1u);
  EXPECT_EQ(counts.flushed_jobs, 1u);
  EXPECT_EQ(counts.in_flight_at_flush, 2u);
  uut.load_ended(1, 3);
  plan.step = 3;
  uut.planned(plan);
  EXPECT_EQ(counts.in_flight_at_flush, 3u);
  EXPECT_EQ(counts.max_in_flight_at_flush, 2u);
}

} // namespace
} // namespace kvtide::replay
