// SPDX-License-Identifier: Apache-2.0

/// @file
/// G3: how much is under way, and who goes first.

#include "tests/gpu/cuda_test.hpp"

namespace kvtide::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// One copy is one unit, and a slice is one copy.
class cuda_flow : public cuda_test {
protected:
  void make_narrow(std::uint64_t units_in_flight, std::uint32_t streams = 1) {
    make([&](cuda_engine_config& x) {
      x.slice_bytes = unit;
      x.bytes_in_flight = units_in_flight * unit;
      x.streams_per_direction = streams;
    });
  }

  static std::uint64_t copies() {
    return stand_in::calls("cudaMemcpyAsync");
  }
};

TEST_F(cuda_flow, G3ASliceIsNoLargerThanAsked) {
  make([](cuda_engine_config& x) { x.slice_bytes = 100; });
  fill(block(0), 7, 1'050);
  auto large = store(0, 0);
  large.fragments[0].bytes = 1'050;
  submit(large);
  EXPECT_EQ(copies(), 11u);
  settle();
  EXPECT_TRUE(holds(slot(0), 7, 1'050));
  EXPECT_EQ(done[0].bytes, 1'050u);
}

TEST_F(cuda_flow, G3BytesUnderWayAreBoundedPerDirection) {
  make_narrow(2);
  submit(store(0, 0, 8));
  submit(store(1, 8, 2));
  EXPECT_EQ(copies(), 2u);
  submit(load(2, 10, 8));
  EXPECT_EQ(copies(), 4u) << "the other direction has room of its own";
  for (auto before = copies(); done.size() < 3; before = copies()) {
    ASSERT_GT(stand_in::runnable(), 0u);
    stand_in::run_all();
    poll();
    EXPECT_LE(copies() - before, 4u);
  }
  EXPECT_EQ(copies(), 18u);
}

TEST_F(cuda_flow, G3TwoSlicesAreUnderWayUnlessToldOtherwise) {
  make_narrow(0);
  submit(store(0, 0, 8));
  EXPECT_EQ(copies(), 2u);
}

/// A stream whose compute takes long does not keep another from copying.
TEST_F(cuda_flow, G3EachStreamMayHaveOneSlice) {
  make_narrow(1, 2);
  auto compute = begin_compute();
  submit(after(store(0, 0, 2), compute.event()));
  submit(store(1, 2, 2));
  EXPECT_EQ(copies(), 2u);
  settle();
  EXPECT_THAT(reported(), ElementsAre(1));
}

TEST_F(cuda_flow, G3AFlushGoesBeforeWhatWaitsForRoom) {
  make_narrow(1);
  auto compute = begin_compute();
  submit(after(store(0, 0), compute.event()));
  submit(store(1, 1));
  submit(store(2, 2));
  EXPECT_EQ(copies(), 1u);
  const auto made = engine->make_fence(1, {2});
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(copies(), 2u);
  settle();
  EXPECT_THAT(reported(), ElementsAre(2));
  EXPECT_TRUE(open(made));
}

TEST_F(cuda_flow, G3WhatAFlushFollowsIsHurriedAlong) {
  make_narrow(1);
  auto compute = begin_compute();
  submit(after(store(0, 0), compute.event()));
  submit(store(1, 1));
  submit(store(2, 2));
  auto flushed = store(3, 3);
  flushed.after = {1};
  submit(flushed);
  const auto made = engine->make_fence(1, {3});
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(copies(), 3u);
  settle();
  EXPECT_THAT(reported(), ElementsAre(1, 3));
  EXPECT_TRUE(open(made));
}

TEST_F(cuda_flow, G3AJobThatBeganStaysInItsStream) {
  make_narrow(1);
  auto compute = begin_compute();
  submit(after(store(0, 0, 4), compute.event()));
  EXPECT_EQ(copies(), 1u);
  (void)engine->make_fence(1, {0});
  EXPECT_EQ(copies(), 4u) << "all of it is under way";
  settle();
  for (std::size_t i = 0; i < 4; ++i)
    fill(block(i), 7);
  EXPECT_THAT(reported(), IsEmpty());
  compute.end();
  settle();
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(holds(slot(i), 7)) << "no row went before its compute";
}

TEST_F(cuda_flow, G3JobsBehindAFlushedOneGoOn) {
  make_narrow(1);
  auto compute = begin_compute();
  submit(after(store(0, 0, 3), compute.event()));
  submit(store(1, 3));
  (void)engine->make_fence(1, {0});
  compute.end();
  settle();
  EXPECT_THAT(reported(), ElementsAre(0, 1));
}

TEST_F(cuda_flow, G3AFailedJobGivesItsRoomBack) {
  make_narrow(1);
  stand_in::fail_call("cudaMemcpyAsync", 2, cudaErrorInvalidValue);
  submit(store(0, 0, 3));
  submit(store(1, 3, 3));
  settle();
  EXPECT_THAT(reported(), ElementsAre(0, 1));
  EXPECT_EQ(done[0].result, copy_result::failed);
  EXPECT_EQ(done[0].first_failed_row, 1u);
  EXPECT_EQ(done[0].bytes, unit);
  EXPECT_EQ(done[1].result, copy_result::done);
  EXPECT_EQ(copies(), 5u) << "nothing was tried behind the failure";
}

} // namespace
} // namespace kvtide::gpu
