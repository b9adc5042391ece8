// SPDX-License-Identifier: Apache-2.0

/// @file
/// G6: what the engine leaves behind on the threads that call it, and what it
/// does to captures of others.

#include "gpu/cuda/devices.hpp"
#include "tests/gpu/cuda_test.hpp"

#include <array>
#include <thread>

namespace kvtide::gpu {
namespace {

using ::testing::ElementsAre;

class cuda_thread_state : public cuda_test {
protected:
  cuda_thread_state() {
    auto machine = manual_machine();
    machine.devices = 2;
    stand_in::start(machine);
    device = 1; // While 0 is current.
  }

  /// Nothing that a thread had set is different after a call.
  static void expect_untouched(const char* call) {
    auto current = -1;
    EXPECT_EQ(::cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 0) << call;
    auto mode = cudaStreamCaptureModeThreadLocal;
    EXPECT_EQ(::cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal) << call;
    EXPECT_EQ(::cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  }

  /// As a program does that has a model there.
  static void use_device_0() {
    ASSERT_EQ(::cudaSetDevice(0), cudaSuccess);
  }

  /// Every call of the engine and of what belongs to it.
  void use_everything() {
    make([](cuda_engine_config& x) { x.path = copy_path::kernel; });
    expect_untouched("make");
    auto compute = begin_compute();
    expect_untouched("record");
    fill(block(0), 7);
    submit(after(store(0, 0), compute.event()));
    submit(load(1, 1));
    expect_untouched("submit");
    (void)engine->make_fence(1, {0});
    expect_untouched("make_fence");
    EXPECT_EQ(events->state(compute.event().handle), event_state::pending);
    expect_untouched("state");
    compute.end();
    settle();
    expect_untouched("poll");
    EXPECT_THAT(reported(), ::testing::UnorderedElementsAre(0, 1));
    for (const auto& x : done)
      EXPECT_EQ(x.text, "");
    EXPECT_TRUE(holds(slot(0), 7));
    EXPECT_EQ(engine->lost().text, "");
    engine.reset();
    expect_untouched("the engine's end");
    EXPECT_TRUE(facts_of(1).ok());
    expect_untouched("facts_of");
    auto memory = kv_memory{};
    memory.device = 1;
    memory.tensors.push_back({block(0), 4 * page, memory_kind::device});
    EXPECT_EQ(check_on_device(memory).text, "");
    expect_untouched("check_on_device");
  }
};

/// A thread that never used CUDA has device 0. Whoever sets it back makes a
/// context there, hundreds of megabytes on a GPU that is somebody else's.
TEST_F(cuda_thread_state, G6NoContextIsMadeOnADeviceThatIsNotUsed) {
  std::thread{[this] {
    make([](cuda_engine_config& x) { x.path = copy_path::kernel; });
    submit(load(1, 1));
    settle();
    engine.reset();
  }}.join();
  EXPECT_TRUE(stand_in::has_context(1));
  EXPECT_FALSE(stand_in::has_context(0));
}

TEST_F(cuda_thread_state, G6EveryCallPutsDeviceAndModeBack) {
  use_device_0();
  use_everything();
}

/// Calls that a capture would break are made in a mode that it permits.
TEST_F(cuda_thread_state, G6ACaptureOfAnotherThreadStaysValid) {
  use_device_0();
  make_memory();
  auto captured = value_of(make_stream());
  ASSERT_EQ(
    ::cudaStreamBeginCapture(captured.get(), cudaStreamCaptureModeGlobal),
    cudaSuccess);
  std::thread{[this] { use_everything(); }}.join();
  auto status = cudaStreamCaptureStatusNone;
  EXPECT_EQ(::cudaStreamIsCapturing(captured.get(), &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(::cudaStreamEndCapture(captured.get(), &graph), cudaSuccess);
  EXPECT_EQ(::cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(cuda_thread_state, G6TheSameThreadMayCapture) {
  use_device_0();
  make_memory();
  auto captured = value_of(make_stream());
  ASSERT_EQ(
    ::cudaStreamBeginCapture(captured.get(), cudaStreamCaptureModeGlobal),
    cudaSuccess);
  make();
  submit(store(0, 0));
  settle();
  EXPECT_THAT(reported(), ElementsAre(0));
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(::cudaStreamEndCapture(captured.get(), &graph), cudaSuccess);
  EXPECT_EQ(::cudaGraphDestroy(graph), cudaSuccess);
}

/// The kernel is loaded by then: its first launch may not stop a capture.
TEST_F(cuda_thread_state, G6TheKernelIsLoadedAtStart) {
  use_device_0();
  EXPECT_EQ(stand_in::calls("kernel"), 0u);
  make();
  EXPECT_EQ(stand_in::calls("kernel"), 1u);
}

TEST_F(cuda_thread_state, TwoDevicesWorkInOneProcess) {
  use_device_0();
  make();
  auto first_events = value_of(compute_events::make(0));
  auto on_first = value_of(make_device_buffer(page)); // Device 0 is current.
  auto other = cuda_engine_config{};
  other.wake = [] {};
  other.events = first_events;
  other.pool = pool;
  other.path = copy_path::kernel;
  other.slice_bytes = 1u << 20;
  other.kernel_below = 0;
  auto second = value_of(make_cuda_copy_engine(std::move(other)));
  fill(block(0), 7);
  auto* there = static_cast<std::byte*>(on_first.get());
  fill(there, 8);
  submit(store(0, 0));
  auto elsewhere = store(0, 1);
  elsewhere.fragments[0].src = there;
  EXPECT_EQ(second->submit(elsewhere), ec::none);
  const auto both
    = std::array{engine->make_fence(1, {0}), second->make_fence(1, {0})};
  settle();
  auto seconds_done = std::vector<completion>{};
  second->poll(seconds_done, fences);
  ASSERT_EQ(seconds_done.size(), 1u);
  EXPECT_EQ(seconds_done[0].text, "");
  EXPECT_THAT(reported(), ElementsAre(0));
  EXPECT_TRUE(holds(slot(0), 7));
  EXPECT_TRUE(holds(slot(1), 8));
  for (const auto& one : both)
    EXPECT_TRUE(open(one));
  expect_untouched("two engines");
}

} // namespace
} // namespace kvtide::gpu
