// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/cuda_stand_in/fixture.hpp"

namespace kvtide::stand_in {
namespace {

struct stand_in_events : machine_test {};

/// CUDA Runtime API, cudaEventRecord: before its first record, an event is an
/// empty set of work; a query succeeds and a wait does nothing.
TEST_F(stand_in_events, AnEventThatWasNeverRecordedIsComplete) {
  const auto event = make_event();
  const auto stream = make_stream();
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event), cudaSuccess);
  EXPECT_EQ(pending(), 0u);
  EXPECT_EQ(warnings().size(), 3u);
}

/// CUDA Runtime API, cudaEventQuery: not ready while work that was captured is
/// incomplete. Not ready is no error, but what the thread's last error becomes.
TEST_F(stand_in_events, AnEventIsCompleteWhenTheWorkInFrontOfItIs) {
  auto* device = make_device_bytes(64);
  const auto stream = make_stream();
  const auto event = make_event();
  EXPECT_EQ(cudaMemsetAsync(device, 1, 64, stream), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(device, 2, 64, stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(count_of(device, 64, 1), 64u);
  EXPECT_EQ(pending(), 1u);
}

/// CUDA Runtime API, cudaStreamWaitEvent: uses the record at the time of the
/// call; later ones change nothing for it.
TEST_F(stand_in_events, AWaitKeepsTheRecordItWasGiven) {
  auto* device = make_device_bytes(64);
  const auto stream = make_stream();
  const auto waiting = make_stream();
  const auto event = make_event();
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(waiting, event), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(device, 1, 64, stream), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  hang({device, 64});
  EXPECT_EQ(cudaStreamSynchronize(waiting), cudaSuccess);
  // The wait is over, but the event now stands for the fill.
  EXPECT_EQ(cudaStreamQuery(waiting), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  // A later wait waits for the new record.
  EXPECT_EQ(cudaStreamWaitEvent(waiting, event), cudaSuccess);
  run_all();
  EXPECT_EQ(cudaStreamQuery(waiting), cudaErrorNotReady);
  release_hanging();
  run_all();
  EXPECT_EQ(cudaStreamQuery(waiting), cudaSuccess);
}

/// CUDA Runtime API, cudaEventDestroy: legal while pending, and who waits for
/// it goes on waiting.
TEST_F(stand_in_events, APendingEventMayBeDestroyed) {
  auto* device = make_device_bytes(64);
  const auto stream = make_stream();
  const auto waiting = make_stream();
  const auto event = make_event();
  EXPECT_EQ(cudaMemsetAsync(device, 1, 64, stream), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(waiting, event), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(waiting), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamSynchronize(waiting), cudaSuccess);
  EXPECT_EQ(count_of(device, 64, 1), 64u);
}

/// A handle that was destroyed names nothing, even after new ones were made.
TEST_F(stand_in_events, ADestroyedEventIsNeverAnother) {
  const auto stream = make_stream();
  const auto old = make_event();
  EXPECT_EQ(cudaEventDestroy(old), cudaSuccess);
  for (int i = 0; i < 100; ++i)
    EXPECT_NE(make_event(), old);
  EXPECT_EQ(cudaEventQuery(old), cudaErrorInvalidResourceHandle);
  expect_refusal("cudaEventQuery: an event that was destroyed");
  EXPECT_EQ(cudaEventRecord(old, stream), cudaErrorInvalidResourceHandle);
  expect_refusal("cudaEventRecord: an event that was destroyed");
  EXPECT_EQ(cudaStreamWaitEvent(stream, old), cudaErrorInvalidResourceHandle);
  expect_refusal("cudaStreamWaitEvent: an event that was destroyed");
  EXPECT_EQ(cudaEventDestroy(old), cudaErrorInvalidResourceHandle);
  expect_refusal("cudaEventDestroy: an event that was destroyed");
}

/// CUDA programming guide, multi-device system: a record needs an event of the
/// stream's device; a wait may cross devices.
TEST_F(stand_in_events, RecordsStayOnADeviceAndWaitsDoNot) {
  auto wanted = manual();
  wanted.devices = 2;
  start(wanted);
  const auto stream = make_stream();
  const auto event = make_event();
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  const auto other = make_stream();
  EXPECT_EQ(cudaEventRecord(event, other), cudaErrorInvalidResourceHandle);
  expect_refusal("different devices");
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(other, event), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(other), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
}

/// CUDA Runtime API, cudaEventElapsedTime: needs two records of events that
/// keep time, both complete.
TEST_F(stand_in_events, TimeIsForEventsThatKeepIt) {
  auto* device = make_device_bytes(64);
  const auto stream = make_stream();
  const auto untimed = make_event();
  const auto begin = make_event(cudaEventDefault);
  const auto end = make_event(cudaEventDefault);
  float time = -1;
  EXPECT_EQ(cudaEventElapsedTime(&time, begin, end),
            cudaErrorInvalidResourceHandle);
  expect_refusal("never recorded");
  EXPECT_EQ(cudaEventRecord(begin, stream), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(device, 1, 64, stream), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(end, stream), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&time, begin, end), cudaErrorNotReady);
  run_all();
  EXPECT_EQ(cudaEventElapsedTime(&time, begin, end), cudaSuccess);
  EXPECT_GT(time, 0.0F);
  EXPECT_EQ(cudaEventRecord(untimed, stream), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&time, begin, untimed),
            cudaErrorInvalidResourceHandle);
  expect_refusal("without time");
}

} // namespace
} // namespace kvtide::stand_in
