// SPDX-License-Identifier: Apache-2.0

/// @file
/// G1: what the CUDA engine takes for the end of a copy, and who tells it.

#include "tests/gpu/cuda_test.hpp"

#include <chrono>
#include <future>
#include <thread>

namespace kvtide::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using cuda_completion = cuda_test;

/// Whoever is woken too early, or for nothing, finds nothing.
TEST_F(cuda_completion, G1AJobIsReportedOnlyWhenAllItsBytesAreThere) {
  make();
  for (std::size_t i = 0; i < 3; ++i)
    fill(block(i), 7);
  submit(store(0, 0, 3));
  poll();
  EXPECT_THAT(reported(), IsEmpty());
  auto looks = 0;
  while (stand_in::runnable() > 0 && done.empty()) {
    stand_in::run(0);
    poll();
    ++looks;
  }
  EXPECT_GE(looks, 6) << "two halves of three copies";
  EXPECT_THAT(reported(), ElementsAre(0));
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(holds(slot(i), 7));
}

TEST_F(cuda_completion, G1AnEndWakesTheOwner) {
  make();
  submit(store(0, 0));
  EXPECT_EQ(wakes(), 0);
  stand_in::run_all();
  EXPECT_GE(wakes(), 1);
}

/// No callback need ever come.
TEST_F(cuda_completion, G1AnEndThatWakesNobodyIsFoundByTheNextPoll) {
  make();
  stand_in::fail_call("cudaLaunchHostFunc", 1, cudaErrorNotSupported);
  submit(store(0, 0));
  stand_in::run_all();
  EXPECT_EQ(wakes(), 0);
  poll();
  EXPECT_THAT(reported(), ElementsAre(0));
  EXPECT_EQ(done[0].result, copy_result::done);
}

TEST_F(cuda_completion, G1AnEndWithoutAnEventIsThatOfItsStream) {
  make();
  fill(block(0), 7);
  stand_in::fail_call("cudaEventRecord", 2, cudaErrorUnknown); // Its end.
  submit(store(0, 0));
  while (stand_in::runnable() > 0 && done.empty()) {
    stand_in::run(0);
    poll();
  }
  EXPECT_THAT(reported(), ElementsAre(0));
  EXPECT_TRUE(holds(slot(0), 7));
}

/// Only the stream of the copies knows such an end, so the wake comes from
/// there.
TEST_F(cuda_completion, G1AnEndThatNoEventTellsWakesTheOwner) {
  for (const auto* call : {"cudaEventRecord", "cudaStreamWaitEvent"}) {
    SCOPED_TRACE(call);
    make();
    auto before = stand_in::calls(call);
    submit(store(0, 0)); // How many of them a store makes.
    const auto last = stand_in::calls(call) - before;
    ASSERT_GE(last, 1u);
    settle();
    stand_in::fail_call(call, static_cast<std::uint32_t>(last),
                        cudaErrorUnknown);
    const auto woken = wakes();
    submit(store(1, 1));
    stand_in::run_all();
    EXPECT_GT(wakes(), woken);
    poll();
    EXPECT_THAT(reported(), ElementsAre(0, 1));
    done.clear();
  }
}

/// Nobody can be told to wait for such an end, so the host waits (S8).
TEST_F(cuda_completion, G1WhatFollowsAnEndWithoutAnEventStartsBehindIt) {
  make([](cuda_engine_config& x) { x.streams_per_direction = 2; });
  fill(block(0), 7);
  stand_in::fail_call("cudaEventRecord", 2, cudaErrorUnknown);
  submit(store(0, 0));
  auto behind = load(1, 0);
  behind.fragments[0].dst = block(1);
  submit(behind);
  EXPECT_EQ(stand_in::calls("cudaMemcpyAsync"), 1u);
  settle();
  EXPECT_THAT(reported(), ElementsAre(0, 1));
  EXPECT_TRUE(holds(block(1), 7));
}

TEST_F(cuda_completion, G1AFenceOverWhatFollowsSuchAnEndOpens) {
  make();
  stand_in::fail_call("cudaEventRecord", 2, cudaErrorUnknown);
  submit(store(0, 0));
  for (job_id id = 1; id < 4; ++id) {
    auto next = store(id, id);
    next.after = {id - 1};
    submit(next);
  }
  EXPECT_FALSE(engine->make_fence(5, {3}).has_value());
  settle();
  EXPECT_THAT(reported(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(fences, ElementsAre(5));
}

/// A wake that does not return holds up its own stream, and no copy.
TEST_F(cuda_completion, G1AWakeThatBlocksHoldsUpNoCopy) {
  auto machine = manual_machine();
  machine.threads = 4;
  stand_in::start(machine);
  auto released = std::promise<void>{};
  make([gate = released.get_future().share()](cuda_engine_config& x) {
    x.wake = [gate] { gate.wait(); };
  });
  const auto deadline
    = std::chrono::steady_clock::now() + std::chrono::seconds{5};
  for (job_id id = 0; id < 3; ++id)
    submit(store(id, id));
  while (done.size() < 3 && std::chrono::steady_clock::now() < deadline) {
    poll();
    std::this_thread::yield();
  }
  EXPECT_EQ(done.size(), 3u);
  released.set_value();
  engine.reset(); // Waits for those that were held.
}

/// The stand-in refuses what callbacks must not do, on both kinds of pool.
TEST_F(cuda_completion, G1CallbacksCallNoCudaFunction) {
  make();
  submit(store(0, 0));
  submit(load(1, 1));
  settle();
  EXPECT_GE(stand_in::calls("cudaLaunchHostFunc"), 2u);
  EXPECT_THAT(stand_in::refusals(), IsEmpty());
}

TEST_F(cuda_completion, G1CallbacksThatMoveBytesCallNoCudaFunction) {
  make_memory({});
  make();
  submit(store(0, 0));
  submit(load(1, 1));
  settle();
  EXPECT_GE(stand_in::calls("cudaLaunchHostFunc"), 4u);
  EXPECT_THAT(stand_in::refusals(), IsEmpty());
}

} // namespace
} // namespace kvtide::gpu
