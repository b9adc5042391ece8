// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/cuda_stand_in/fixture.hpp"

#include <array>
#include <atomic>
#include <set>

namespace kvtide::stand_in {
namespace {

struct stand_in_schedule : machine_test {};

/// What three streams with two kernels each did, in the order they did it.
std::string order_of_run(std::uint64_t seed) {
  start(manual(seed));
  std::string order;
  std::array<cudaStream_t, 3> streams{};
  for (std::size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(cudaStreamCreateWithPriority(&streams[i], cudaStreamNonBlocking,
                                           i == 2 ? -5 : 0),
              cudaSuccess);
    const auto letter = static_cast<char>('a' + i);
    for (int k = 0; k < 2; ++k)
      EXPECT_EQ(enqueue(
                  streams[i], [&order, letter] { order += letter; },
                  [&order, letter] { order += letter; }, {}),
                cudaSuccess);
  }
  run_all();
  return order;
}

TEST_F(stand_in_schedule, TheSameSeedGivesTheSameRun) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto order = order_of_run(seed);
    EXPECT_EQ(order.size(), 12u);
    EXPECT_EQ(order, order_of_run(seed));
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 10u);
}

/// CUDA programming guide, stream priorities: a hint for kernels that wait; no
/// promise that anything comes first.
TEST_F(stand_in_schedule, PrioritiesOrderNothingUnderManySeeds) {
  std::set<char> first;
  std::set<char> last;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto order = order_of_run(seed);
    first.insert(order.front());
    last.insert(order.back());
  }
  EXPECT_EQ(first.size(), 3u);
  EXPECT_EQ(last.size(), 3u);
}

TEST_F(stand_in_schedule, OneStreamOffersOneHalfAtATime) {
  const auto one = make_stream();
  const auto two = make_stream();
  auto* device = make_device_bytes(64);
  EXPECT_EQ(runnable(), 0u);
  EXPECT_EQ(cudaMemsetAsync(device, 1, 32, one), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(device, 2, 32, one), cudaSuccess);
  EXPECT_EQ(runnable(), 1u);
  EXPECT_EQ(cudaMemsetAsync(device + 32, 3, 32, two), cudaSuccess);
  EXPECT_EQ(runnable(), 2u);
  EXPECT_EQ(pending(), 3u);
  run(1);
  EXPECT_EQ(runnable(), 2u);
  run(1);
  EXPECT_EQ(runnable(), 1u);
  EXPECT_EQ(pending(), 2u);
}

TEST_F(stand_in_schedule, AWaitForWhatNothingFinishesEndsInManualMode) {
  auto* device = make_device_bytes(64);
  const auto stream = make_stream();
  hang({device, 64});
  EXPECT_EQ(cudaMemsetAsync(device, 1, 64, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchTimeout);
  expect_refusal("nothing will finish");
}

/// Threads in the background: what streams and events order is ordered, and
/// synchronizing sees all bytes.
TEST_F(stand_in_schedule, ThreadsKeepTheOrderOfStreamsAndEvents) {
  for (const std::uint32_t threads : {1u, 2u, 4u}) {
    settings wanted;
    wanted.threads = threads;
    wanted.seed = threads;
    start(wanted);
    auto* host = make_host_bytes(4096, 0);
    auto* device = make_device_bytes(4096);
    const auto out = make_stream();
    const auto back = make_stream();
    const auto filled = make_event();
    const auto read = make_event();
    for (int round = 1; round <= 50; ++round) {
      EXPECT_EQ(cudaStreamWaitEvent(out, read), cudaSuccess);
      EXPECT_EQ(cudaMemsetAsync(device, round, 4096, out), cudaSuccess);
      EXPECT_EQ(cudaEventRecord(filled, out), cudaSuccess);
      EXPECT_EQ(cudaStreamWaitEvent(back, filled), cudaSuccess);
      copy(host, device, 4096, back);
      EXPECT_EQ(cudaEventRecord(read, back), cudaSuccess);
      EXPECT_EQ(cudaEventSynchronize(read), cudaSuccess);
      ASSERT_EQ(count_of(host, 4096, round), 4096u);
    }
  }
}

/// CUDA Runtime API, cudaEventQuery: success promises what synchronizing does.
TEST_F(stand_in_schedule, AQueryThatSucceedsSeesAllBytes) {
  start();
  auto* host = make_host_bytes(4096, 0);
  auto* device = make_device_bytes(4096);
  const auto stream = make_stream();
  const auto event = make_event();
  for (int round = 1; round <= 20; ++round) {
    EXPECT_EQ(cudaMemsetAsync(device, round, 4096, stream), cudaSuccess);
    copy(host, device, 4096, stream);
    EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
    while (cudaEventQuery(event) == cudaErrorNotReady)
      std::this_thread::yield();
    ASSERT_EQ(count_of(host, 4096, round), 4096u);
  }
}

TEST_F(stand_in_schedule, AMachineEndsWithWorkLeftOver) {
  start();
  auto* device = make_device_bytes(64);
  hang({device, 64});
  const auto stream = make_stream();
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(cudaMemsetAsync(device, 1, 64, stream), cudaSuccess);
  EXPECT_GT(pending(), 0u);
  start();
  EXPECT_EQ(pending(), 0u);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
  expect_refusal("destroyed or never made");
}

} // namespace
} // namespace kvtide::stand_in
