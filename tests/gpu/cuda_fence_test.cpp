// SPDX-License-Identifier: Apache-2.0

/// @file
/// G2 and S5: events that are handed out, and what they stand for.

#include "tests/gpu/cuda_test.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kvtide::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using cuda_fence = cuda_test;

/// An event that was not recorded yet holds nobody.
TEST_F(cuda_fence, G2AFenceIsRecordedBeforeItIsHandedOut) {
  make();
  auto compute = begin_compute();
  submit(after(store(0, 0), compute.event()));
  const auto made = engine->make_fence(1, {0});
  ASSERT_EQ(made->kind, fence::kind_t::event);
  EXPECT_FALSE(open(made));
  auto consumer = value_of(make_stream());
  EXPECT_EQ(::cudaStreamWaitEvent(
              consumer.get(), reinterpret_cast<cudaEvent_t>(made->handle), 0),
            cudaSuccess);
  stand_in::run_all();
  const auto status = ::cudaStreamQuery(consumer.get());
  ignore(status);
  EXPECT_EQ(status, cudaErrorNotReady);
  compute.end();
  stand_in::run_all();
  EXPECT_EQ(::cudaStreamQuery(consumer.get()), cudaSuccess);
  EXPECT_TRUE(open(made));
}

TEST_F(cuda_fence, G2AFenceThatCannotBeRecordedIsTheHosts) {
  make();
  for (const auto* call : {"cudaEventRecord", "cudaStreamWaitEvent"}) {
    const auto id = static_cast<job_id>(done.size());
    submit(store(id, id));
    stand_in::fail_call(call, 1, cudaErrorUnknown);
    EXPECT_FALSE(engine->make_fence(id, {id}).has_value()) << call;
    poll();
    EXPECT_EQ(fences.size(), id) << call;
    settle();
  }
  EXPECT_THAT(fences, ElementsAre(0, 1));
}

/// Compute of the same step may not have been told to wait yet.
TEST_F(cuda_fence, G2AFenceIsUsedAgainOnlyByALaterStep) {
  make();
  auto handles = std::vector<std::uint64_t>{};
  const auto fence_of = [&](step_id step, job_id id) {
    submit(store(id, id % 4));
    const auto made = engine->make_fence(step, {id});
    settle();
    return made->handle;
  };
  // More than an engine has in stock, so that one would come back.
  for (job_id id = 0; id < 20; ++id)
    handles.push_back(fence_of(1, id));
  const auto again = fence_of(2, 20);
  EXPECT_THAT(handles, ::testing::Contains(again)) << "is used again then";
  std::sort(handles.begin(), handles.end());
  EXPECT_EQ(std::adjacent_find(handles.begin(), handles.end()), handles.end());
}

/// Whoever was told to wait for it would wait for other work.
TEST_F(cuda_fence, G2AFenceThatIsClosedIsNotUsedAgain) {
  make();
  auto compute = begin_compute();
  submit(after(store(0, 0), compute.event()));
  const auto first = engine->make_fence(1, {0});
  submit(after(store(1, 1), compute.event()));
  const auto second = engine->make_fence(2, {1});
  submit(after(store(2, 2), compute.event()));
  const auto third = engine->make_fence(3, {2});
  EXPECT_NE(first->handle, second->handle);
  EXPECT_NE(first->handle, third->handle);
  EXPECT_NE(second->handle, third->handle);
}

/// The events of slices are used again, too: by then nobody may wait for them.
TEST_F(cuda_fence, G2AnEndThatIsWaitedForIsNotRecordedAnew) {
  make([](cuda_engine_config& x) { x.streams_per_direction = 2; });
  fill(block(0), 7);
  auto compute = begin_compute();
  for (job_id id = 10; id < 20; ++id)
    submit(store(id, id));
  settle(); // Events to use again.
  submit(after(store(0, 0), compute.event()));
  auto behind = store(1, 1);
  behind.after = {0};
  submit(behind);
  for (job_id id = 20; id < 24; id += 1)
    submit(load(id, id));
  settle();
  EXPECT_THAT(reported(), ::testing::Not(::testing::Contains(1)));
  compute.end();
  settle();
  EXPECT_EQ(done.size(), 16u);
}

/// The order of the engine's events is that of its streams: no job starts
/// because its event looks complete.
TEST_F(cuda_fence, G2AJobBehindAnEventThatWasNeverMadeFails) {
  make();
  auto unknown = store(0, 0);
  unknown.after_events.push_back({(std::uint64_t{1} << 32) | 9});
  fill(block(0), 7);
  submit(unknown);
  settle();
  ASSERT_THAT(reported(), ElementsAre(0));
  EXPECT_EQ(done[0].result, copy_result::failed);
  EXPECT_THAT(done[0].text, ::testing::HasSubstr("never recorded"));
  EXPECT_TRUE(holds(slot(0), 0));
  EXPECT_GE(wakes(), 1);
}

/// S6: also one whose stream is busy, and one that is hurried.
TEST_F(cuda_fence, S6ACopyStartsBehindItsCompute) {
  make();
  auto first = begin_compute();
  auto second = begin_compute();
  submit(after(after(store(0, 0), first.event()), second.event()));
  submit(after(store(1, 1), second.event()));
  (void)engine->make_fence(1, {1});
  first.end();
  settle();
  EXPECT_THAT(reported(), IsEmpty());
  for (std::size_t i = 0; i < 2; ++i)
    fill(block(i), 7); // What the compute does.
  second.end();
  settle();
  EXPECT_THAT(reported(), UnorderedElementsAre(0, 1));
  EXPECT_TRUE(holds(slot(0), 7));
  EXPECT_TRUE(holds(slot(1), 7));
}

/// S5: each fence has a stream of its own.
TEST_F(cuda_fence, S5AFenceOverAJobThatHangsHoldsNoOther) {
  make([](cuda_engine_config& x) { x.streams_per_direction = 2; });
  stand_in::hang({block(0), unit});
  submit(store(0, 0));
  submit(store(1, 1));
  const auto hangs = engine->make_fence(1, {0});
  const auto both = engine->make_fence(1, {0, 1});
  const auto other = engine->make_fence(1, {1});
  settle();
  EXPECT_FALSE(open(hangs));
  EXPECT_FALSE(open(both));
  EXPECT_TRUE(open(other));
  stand_in::release_hanging();
  settle();
  EXPECT_TRUE(open(hangs));
  EXPECT_TRUE(open(both));
}

TEST_F(cuda_fence, S5AHostFenceOpensBehindTheReportsOfItsJobs) {
  make([](cuda_engine_config& x) { x.fences = fence_wait::host; });
  auto compute = begin_compute();
  submit(after(store(0, 0), compute.event()));
  submit(store(1, 1));
  EXPECT_FALSE(engine->make_fence(4, {0, 1}).has_value());
  EXPECT_FALSE(engine->make_fence(5, {1}).has_value());
  settle();
  EXPECT_THAT(fences, IsEmpty()) << "job 1 is behind job 0 in its stream";
  compute.end();
  settle();
  EXPECT_THAT(reported(), UnorderedElementsAre(0, 1));
  EXPECT_THAT(fences, UnorderedElementsAre(4, 5));
}

/// S5, S8: a wait that the driver refuses is made up for by the host; whatever
/// is ordered behind the job would else be free to go.
TEST_F(cuda_fence, S8AWaitThatIsRefusedIsNotLeftOut) {
  make([](cuda_engine_config& x) { x.streams_per_direction = 2; });
  fill(block(0), 7);
  fill(block(1), 8);
  auto compute = begin_compute();
  submit(after(store(0, 0), compute.event()));
  auto second = store(1, 1); // Writes the same slot.
  second.fragments[0].dst = slot(0);
  second.slots = {0};
  stand_in::fail_call("cudaStreamWaitEvent", 1, cudaErrorUnknown);
  submit(second);
  auto reader = load(2, 0);
  reader.fragments[0].dst = block(2);
  submit(reader);
  settle();
  EXPECT_THAT(reported(), IsEmpty());
  compute.end();
  settle();
  EXPECT_EQ(done.size(), 3u);
  EXPECT_TRUE(holds(slot(0), 8));
  EXPECT_TRUE(holds(block(2), 8));
}

} // namespace
} // namespace kvtide::gpu
