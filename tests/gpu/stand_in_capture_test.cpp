// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/cuda_stand_in/fixture.hpp"

#include <functional>
#include <thread>

namespace kvtide::stand_in {
namespace {

class stand_in_capture : public machine_test {
protected:
  cudaStreamCaptureStatus status(cudaStream_t asked) {
    auto found = cudaStreamCaptureStatusNone;
    EXPECT_EQ(cudaStreamIsCapturing(asked, &found), cudaSuccess);
    return found;
  }

  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    EXPECT_EQ(cudaStreamBeginCapture(stream, mode), cudaSuccess);
  }

  void end(cudaError_t expected) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), expected);
    EXPECT_EQ(graph != nullptr, expected == cudaSuccess);
    if (graph != nullptr) {
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
    EXPECT_EQ(status(stream), cudaStreamCaptureStatusNone);
  }

  static cudaStreamCaptureMode exchange(cudaStreamCaptureMode mode) {
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    return mode;
  }

  std::byte* device = make_device_bytes(64);
  cudaStream_t stream = make_stream();
  cudaStream_t other = make_stream();
  cudaEvent_t event = make_event();
};

/// CUDA Runtime API, cudaStreamBeginCapture: what enters the stream is captured
/// and not executed.
TEST_F(stand_in_capture, CapturedWorkDoesNotRun) {
  EXPECT_EQ(status(stream), cudaStreamCaptureStatusNone);
  begin();
  EXPECT_EQ(status(stream), cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaMemsetAsync(device, 1, 64, stream), cudaSuccess);
  EXPECT_EQ(enqueue(
              stream, [] { FAIL(); }, [] { FAIL(); }, {}),
            cudaSuccess);
  EXPECT_EQ(pending(), 0u);
  end(cudaSuccess);
  run_all();
  EXPECT_EQ(count_of(device, 64, 1), 0u);
}

/// CUDA Runtime API, cudaThreadExchangeStreamCaptureMode: while a capture in
/// global mode goes on, a potentially unsafe call of any thread in global mode
/// fails, and the capture with it.
TEST_F(stand_in_capture, AnUnsafeCallOfAnotherThreadBreaksAGlobalCapture) {
  EXPECT_EQ(cudaEventRecord(event, other), cudaSuccess);
  run_all();
  void* memory = nullptr;
  const auto pages = make_pages(1);
  const std::vector<std::function<cudaError_t()>> unsafe{
    [&] { return cudaEventQuery(event); },
    [&] { return cudaStreamQuery(other); },
    [&] { return cudaMalloc(&memory, 64); },
    [&] { return cudaHostAlloc(&memory, 64, 0); },
    [&] { return cudaHostRegister(pages.get(), 4096, 0); },
  };
  for (const auto& call : unsafe) {
    begin();
    std::thread{[&] {
      EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    }}.join();
    expect_refusal("unsafe while a stream captures");
    EXPECT_EQ(status(stream), cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(cudaMemsetAsync(device, 1, 64, stream),
              cudaErrorStreamCaptureInvalidated);
    end(cudaErrorStreamCaptureInvalidated);
  }
}

/// The same: a thread in relaxed mode may, and so may one in thread-local mode
/// while others capture.
TEST_F(stand_in_capture, AThreadInAnotherModeDoesNotBreakIt) {
  EXPECT_EQ(cudaEventRecord(event, other), cudaSuccess);
  run_all();
  begin();
  for (const auto mode :
       {cudaStreamCaptureModeRelaxed, cudaStreamCaptureModeThreadLocal})
    std::thread{[&] {
      EXPECT_EQ(exchange(mode), cudaStreamCaptureModeGlobal);
      EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
      EXPECT_EQ(cudaStreamQuery(other), cudaSuccess);
      EXPECT_EQ(exchange(cudaStreamCaptureModeGlobal), mode);
    }}.join();
  end(cudaSuccess);
}

/// The same: the capturing thread's own calls count in thread-local mode, too,
/// and those of others do not if the capture is thread-local.
TEST_F(stand_in_capture, AThreadLocalCaptureIsBrokenByItsOwnThreadOnly) {
  begin(cudaStreamCaptureModeThreadLocal);
  std::thread{[&] { EXPECT_EQ(cudaStreamQuery(other), cudaSuccess); }}.join();
  exchange(cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(cudaStreamQuery(other), cudaErrorStreamCaptureUnsupported);
  expect_refusal("unsafe");
  exchange(cudaStreamCaptureModeGlobal);
  end(cudaErrorStreamCaptureInvalidated);
  begin(cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(cudaStreamQuery(other), cudaSuccess);
  end(cudaSuccess);
}

/// CUDA programming guide, stream capture, prohibited operations: a stream that
/// captures, and the device it belongs to, cannot be waited for or asked.
TEST_F(stand_in_capture, ACapturingStreamHasNoProgressInAnyMode) {
  exchange(cudaStreamCaptureModeRelaxed);
  for (const auto ask : {cudaStreamQuery, cudaStreamSynchronize}) {
    begin(cudaStreamCaptureModeRelaxed);
    EXPECT_EQ(ask(stream), cudaErrorStreamCaptureUnsupported);
    expect_refusal("never done");
    end(cudaErrorStreamCaptureInvalidated);
  }
  begin(cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
  expect_refusal("never done");
  end(cudaErrorStreamCaptureInvalidated);
}

/// CUDA Runtime API, cudaErrorCapturedEvent: an event that was last recorded in
/// a capture has no progress, not even for a thread in relaxed mode, until it
/// is recorded elsewhere.
TEST_F(stand_in_capture, ACapturedEventCannotBeQueried) {
  exchange(cudaStreamCaptureModeRelaxed);
  begin();
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorCapturedEvent);
  expect_refusal("recorded in a capture");
  end(cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaEventSynchronize(event), cudaErrorCapturedEvent);
  expect_refusal("recorded in a capture");
  EXPECT_EQ(cudaStreamWaitEvent(other, event), cudaErrorCapturedEvent);
  expect_refusal("has ended");
  EXPECT_EQ(cudaEventRecord(event, other), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
}

/// CUDA programming guide, cross-stream dependencies: who waits for a captured
/// event is captured as well, and must be joined before the capture ends.
TEST_F(stand_in_capture, AStreamThatWaitsForACapturedEventIsCaptured) {
  begin();
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(other, event), cudaSuccess);
  EXPECT_EQ(status(other), cudaStreamCaptureStatusActive);
  EXPECT_EQ(warnings().size(), 1u);
  EXPECT_EQ(cudaMemsetAsync(device, 1, 64, other), cudaSuccess);
  EXPECT_EQ(pending(), 0u);
  const auto joined = make_event();
  EXPECT_EQ(cudaEventRecord(joined, other), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, joined), cudaSuccess);
  end(cudaSuccess);
  EXPECT_EQ(status(other), cudaStreamCaptureStatusNone);
  // Not joined, or not after its last work.
  for (const bool early : {false, true}) {
    begin();
    EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(other, event), cudaSuccess);
    if (early) {
      EXPECT_EQ(cudaEventRecord(joined, other), cudaSuccess);
      EXPECT_EQ(cudaStreamWaitEvent(stream, joined), cudaSuccess);
    }
    EXPECT_EQ(cudaMemsetAsync(device, 1, 64, other), cudaSuccess);
    end(cudaErrorStreamCaptureUnjoined);
    expect_refusal("not joined");
  }
}

/// CUDA Runtime API, cudaErrorStreamCaptureIsolation and ...Merge: a capture
/// depends on nothing outside of it, and two of them are never joined.
TEST_F(stand_in_capture, ACaptureIsIsolated) {
  EXPECT_EQ(cudaEventRecord(event, other), cudaSuccess);
  begin();
  EXPECT_EQ(cudaStreamWaitEvent(stream, event),
            cudaErrorStreamCaptureIsolation);
  expect_refusal("outside");
  end(cudaErrorStreamCaptureInvalidated);
  begin();
  EXPECT_EQ(cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal),
            cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, other), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event), cudaErrorStreamCaptureMerge);
  expect_refusal("two captures");
  end(cudaErrorStreamCaptureInvalidated);
}

/// CUDA Runtime API, cudaStreamIsCapturing: while a blocking stream captures,
/// the legacy stream cannot be used; asking it does no harm.
TEST_F(stand_in_capture, TheLegacyStreamIsUnusableBesideABlockingCapture) {
  stream = make_stream(cudaStreamDefault);
  begin(cudaStreamCaptureModeRelaxed);
  auto found = cudaStreamCaptureStatusNone;
  EXPECT_EQ(cudaStreamIsCapturing(nullptr, &found),
            cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(status(stream), cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaMemsetAsync(device, 1, 64, nullptr),
            cudaErrorStreamCaptureImplicit);
  expect_refusal("legacy stream would wait");
  end(cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed),
            cudaErrorStreamCaptureUnsupported);
  expect_refusal("cannot be captured");
}

/// CUDA Runtime API, cudaStreamEndCapture: on the stream and, unless relaxed,
/// on the thread where it began.
TEST_F(stand_in_capture, ACaptureEndsWhereItBegan) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
  expect_refusal("does not capture");
  begin();
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal),
            cudaErrorIllegalState);
  expect_refusal("captures already");
  std::thread{[&] {
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph),
              cudaErrorStreamCaptureWrongThread);
  }}.join();
  expect_refusal("another thread");
  end(cudaSuccess);
}

} // namespace
} // namespace kvtide::stand_in
