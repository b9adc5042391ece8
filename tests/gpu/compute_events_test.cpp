// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/compute_events.hpp"
#include "tests/gpu/cuda_test.hpp"

namespace kvtide::gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class cuda_compute_events : public cuda_test {
protected:
  cuda_compute_events() : stream(value_of(make_stream())) {
    // nop
  }

  void TearDown() override {
    stream = {};
    cuda_test::TearDown();
  }

  void make_events(std::uint32_t capacity) {
    events = value_of(compute_events::make(0, capacity));
  }

  std::uint64_t record() {
    return value_of(events->record(to_number(stream.get())));
  }

  /// True if a stream that waits for the event now is held up.
  bool holds_up(std::uint64_t handle) {
    auto waiting = value_of(make_stream());
    EXPECT_EQ(events->wait(waiting.get(), handle).text, "");
    stand_in::run_all();
    const auto status = ::cudaStreamQuery(waiting.get());
    ignore(status);
    return status == cudaErrorNotReady;
  }

  cuda_stream stream;
};

TEST_F(cuda_compute_events, AnEventIsCompleteWhenWhatIsBeforeItHasEnded) {
  make_events(8);
  auto compute = begin_compute();
  const auto handle = compute.event().handle;
  EXPECT_NE(handle, 0u);
  EXPECT_EQ(events->state(handle), event_state::pending);
  EXPECT_TRUE(holds_up(handle));
  compute.end();
  stand_in::run_all();
  EXPECT_EQ(events->state(handle), event_state::complete);
  EXPECT_FALSE(holds_up(handle));
  expect_no_error();
}

/// One event, two generations: the old handle means the old work.
TEST_F(cuda_compute_events, G2AnOldHandleStaysComplete) {
  make_events(1);
  const auto old = record();
  stand_in::run_all();
  auto compute = begin_compute();
  EXPECT_EQ(stand_in::calls("cudaEventCreateWithFlags"), 1u);
  EXPECT_NE(compute.event().handle, old);
  EXPECT_EQ(events->state(old), event_state::complete);
  EXPECT_EQ(events->state(compute.event().handle), event_state::pending);
  EXPECT_FALSE(holds_up(old));
  EXPECT_TRUE(holds_up(compute.event().handle));
}

TEST_F(cuda_compute_events, G2AHandleExistsOnlyOnceItIsRecorded) {
  make_events(1);
  stand_in::fail_call("cudaEventRecord", 1, cudaErrorUnknown);
  EXPECT_EQ(events->record(to_number(stream.get())).failure().code,
            ec::device_failure);
  const auto next = record();
  make_events(1);
  EXPECT_EQ(events->state(next), event_state::unknown);
  stand_in::fail_call("cudaEventRecord", 1, cudaErrorUnknown);
  EXPECT_FALSE(events->record(to_number(stream.get())).ok());
  EXPECT_EQ(events->state(next), event_state::unknown)
    << "what failed made no handle";
}

TEST_F(cuda_compute_events, G2NobodyWaitsForAHandleThatWasNeverMade) {
  make_events(2);
  const auto known = record();
  for (const auto wrong :
       {std::uint64_t{0}, known + 1, known + (std::uint64_t{1} << 32),
        known & 0xffff'ffffu, ~std::uint64_t{0}}) {
    EXPECT_EQ(events->state(wrong), event_state::unknown) << wrong;
    EXPECT_EQ(events->wait(stream.get(), wrong).code, ec::invalid_argument);
  }
}

TEST_F(cuda_compute_events, Mem01AFullTableIsAnErrorOfThisCallAlone) {
  make_events(1);
  auto compute = begin_compute();
  const auto refused = events->record(to_number(stream.get()));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, ec::out_of_memory);
  EXPECT_THAT(refused.failure().text, HasSubstr("1 compute events"));
  expect_no_error();
  compute.end();
  stand_in::run_all();
  EXPECT_TRUE(events->record(to_number(stream.get())).ok());
}

TEST_F(cuda_compute_events, AStreamOfAnotherDeviceIsRefused) {
  auto machine = manual_machine();
  machine.devices = 2;
  (void)stream.release();
  stand_in::start(machine);
  const device_scope scope{1};
  auto foreign = value_of(make_stream());
  make_events(1);
  const auto refused = events->record(to_number(foreign.get()));
  expected_refusals = stand_in::refusals().size();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, ec::invalid_argument);
  EXPECT_THAT(refused.failure().text, HasSubstr("device 0"));
  expect_no_error();
}

/// G6: nothing of ours becomes part of a graph, and the capture goes on.
TEST_F(cuda_compute_events, G6AStreamThatIsCapturedIsRefused) {
  make_events(1);
  ASSERT_EQ(::cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal),
            cudaSuccess);
  const auto refused = events->record(to_number(stream.get()));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, ec::out_of_order);
  EXPECT_THAT(refused.failure().text, HasSubstr("captured into a graph"));
  auto other = value_of(make_stream());
  EXPECT_EQ(events->check_not_capturing({to_number(other.get())}).text, "");
  EXPECT_EQ(
    events
      ->check_not_capturing({to_number(other.get()), to_number(stream.get())})
      .code,
    ec::out_of_order);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(::cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
  EXPECT_EQ(::cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(events->check_not_capturing({to_number(stream.get())}).text, "");
  EXPECT_TRUE(events->record(to_number(stream.get())).ok());
}

TEST_F(cuda_compute_events, G7AbandonedEventsAreNotGivenBack) {
  make_events(2);
  (void)record();
  (void)record();
  stand_in::lose_context(0);
  expects_loss = true;
  events->abandon();
  events.reset();
  EXPECT_EQ(stand_in::calls("cudaEventDestroy"), 0u);
  (void)stream.release();
}

TEST_F(cuda_compute_events, ATableHasOneTo65536Places) {
  for (const auto wrong : {0u, 65'537u})
    EXPECT_EQ(compute_events::make(0, wrong).failure().code,
              ec::invalid_argument);
  EXPECT_TRUE(compute_events::make(0, 65'536).ok());
  EXPECT_EQ(compute_events::make(1).failure().code, ec::unsupported);
}

} // namespace
} // namespace kvtide::gpu
