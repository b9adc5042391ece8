// SPDX-License-Identifier: Apache-2.0

/// @file
/// G7 and MEM-01: errors that stay, and errors that must not.

#include "tests/gpu/cuda_test.hpp"

#include <numeric>

namespace kvtide::gpu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class cuda_loss : public cuda_test {
protected:
  /// All calls of the runtime that give something back.
  static std::uint64_t given_back() {
    auto sum = std::uint64_t{0};
    for (const auto* call : {"cudaEventDestroy", "cudaStreamDestroy",
                             "cudaFreeHost", "cudaHostUnregister", "cudaFree"})
      sum += stand_in::calls(call);
    return sum;
  }

  /// Whether the call that was to fail was made at all.
  static bool is_lost() {
    const auto status = ::cudaDeviceSynchronize();
    ignore(status);
    return status == cudaErrorIllegalAddress;
  }

  /// Two streams, narrow, so that jobs run, wait and are queued.
  void make_busy(copy_path path = copy_path::plain) {
    make([path](cuda_engine_config& x) {
      x.path = path;
      x.streams_per_direction = 2;
      x.slice_bytes = unit;
      x.bytes_in_flight = 2 * unit;
    });
  }

  /// Stores that follow one another, and loads beside them.
  void submit_some(job_id first, job_id count) {
    for (auto id = first; id < first + count; ++id) {
      auto next = id % 2 == 0 ? store(id, id, 2) : load(id, id, 2);
      if (id > first)
        next.after = {id - 1};
      submit(next);
    }
  }

  /// Every job failed, once, for the reason that CUDA gave.
  void expect_all_failed(std::size_t count) {
    auto ids = reported();
    std::sort(ids.begin(), ids.end());
    auto wanted = std::vector<job_id>(count);
    std::iota(wanted.begin(), wanted.end(), 0u);
    EXPECT_EQ(ids, wanted);
    EXPECT_EQ(engine->in_flight(), 0u);
    EXPECT_EQ(engine->lost().code, ec::device_failure);
    EXPECT_THAT(engine->lost().text, AllOf(HasSubstr("cudaErrorIllegalAddress"),
                                           HasSubstr("has to be restarted")));
    EXPECT_GE(wakes(), 1);
  }
};

TEST_F(cuda_loss, G7AnErrorOfACopyFailsEveryJobOnce) {
  expects_loss = true;
  make_busy();
  submit_some(0, 2);
  settle();
  submit_some(2, 4);
  stand_in::fail_when_run({slot(4), unit});
  settle();
  const auto before = done.size();
  poll();
  EXPECT_EQ(done.size(), before);
  EXPECT_EQ(std::count_if(done.begin(), done.end(),
                          [](const completion& x) {
                            return x.result == copy_result::failed;
                          }),
            4)
    << "two were over";
  expect_all_failed(6);
  EXPECT_THAT(done.back().text, HasSubstr("cudaErrorIllegalAddress"));
}

/// Whichever call is the one that finds out.
TEST_F(cuda_loss, G7AnErrorOfACallFailsEveryJobOnce) {
  for (const auto path : {copy_path::batch, copy_path::kernel})
    for (const auto* call :
         {"cudaMemcpyAsync", "cudaMemcpyBatchAsync", "kernel", "cudaEventQuery",
          "cudaEventRecord", "cudaStreamWaitEvent", "cudaLaunchHostFunc",
          "cudaEventCreateWithFlags", "cudaEventElapsedTime"})
      for (std::uint32_t nth = 1; nth < 4; ++nth) {
        SCOPED_TRACE(std::string{call} + ", call " + std::to_string(nth));
        start_anew();
        make_busy(path);
        stand_in::fail_call(call, nth, cudaErrorIllegalAddress, true);
        submit_some(0, 6);
        (void)engine->make_fence(1, {3});
        settle();
        if (is_lost()) {
          submit_some(6, 1);
          settle();
          expect_all_failed(7);
        }
      }
  expects_loss = true;
}

TEST_F(cuda_loss, G7AfterwardsNothingBegins) {
  expects_loss = true;
  make_busy();
  submit_some(0, 1);
  stand_in::lose_context(0);
  settle();
  EXPECT_THAT(reported(), ElementsAre(0));
  const auto copies = stand_in::calls("cudaMemcpyAsync");
  submit_some(1, 2);
  EXPECT_EQ(engine->in_flight(), 2u);
  EXPECT_EQ(engine->submit(store(1, 1)), ec::invalid_argument);
  const auto made = engine->make_fence(1, {1, 2});
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->kind, fence::kind_t::none);
  const auto woken = wakes();
  EXPECT_GE(woken, 1);
  poll();
  EXPECT_THAT(reported(), ElementsAre(0, 1, 2));
  EXPECT_EQ(stand_in::calls("cudaMemcpyAsync"), copies);
  expect_all_failed(3);
}

TEST_F(cuda_loss, G7HostFencesOpen) {
  expects_loss = true;
  make([](cuda_engine_config& x) { x.fences = fence_wait::host; });
  auto compute = begin_compute();
  submit(after(store(0, 0), compute.event()));
  EXPECT_FALSE(engine->make_fence(9, {0}).has_value());
  stand_in::lose_context(0);
  poll();
  EXPECT_THAT(reported(), ElementsAre(0));
  EXPECT_THAT(fences, ElementsAre(9));
}

/// Leak rather than free.
TEST_F(cuda_loss, G7NothingIsGivenBackAfterwards) {
  expects_loss = true;
  make_busy(copy_path::kernel);
  auto compute = begin_compute();
  for (job_id id = 10; id < 14; ++id)
    submit(store(id, id)); // Events to use again.
  (void)engine->make_fence(1, {11});
  settle();
  submit(after(store(0, 0, 2), compute.event()));
  submit(store(1, 2, 2));
  (void)engine->make_fence(2, {0});
  submit(store(2, 4, 4)); // Has begun, and waits for room.
  stand_in::lose_context(0);
  settle();
  const auto before = given_back();
  engine.reset();
  EXPECT_EQ(given_back(), before);
  events.reset();
  pool.reset();
  EXPECT_EQ(given_back(), before);
}

TEST_F(cuda_loss, G7NothingIsGivenBackIfTheEndFindsOut) {
  expects_loss = true;
  make_memory({});
  make_busy();
  submit_some(0, 3);
  stand_in::lose_context(0);
  const auto before = given_back();
  engine.reset();
  EXPECT_EQ(given_back(), before);
}

/// What a copy may still write stays.
TEST_F(cuda_loss, G7MemoryIsKeptIfCopiesNeverEnd) {
  auto kept = std::make_shared<int>(1);
  const auto seen = std::weak_ptr<int>{kept};
  make([&kept](cuda_engine_config& x) {
    x.keep = std::exchange(kept, nullptr);
    x.patience = std::chrono::milliseconds{0};
  });
  stand_in::hang({slot(0), unit});
  fill(block(0), 7);
  submit(store(0, 0));
  stand_in::run_all();
  const auto before = given_back();
  engine.reset();
  EXPECT_FALSE(seen.expired());
  EXPECT_EQ(given_back(), before);
  stand_in::release_hanging();
  stand_in::run_all(); // Writes the slot, and calls back.
  EXPECT_TRUE(holds(slot(0), 7));
  EXPECT_GE(wakes(), 1);
  expects_loss = true; // What it holds stays for ever.
  expects_leaks = true;
}

TEST_F(cuda_loss, G7MemoryIsLetGoIfAllCopiesEnded) {
  auto kept = std::make_shared<int>(1);
  const auto seen = std::weak_ptr<int>{kept};
  make(
    [&kept](cuda_engine_config& x) { x.keep = std::exchange(kept, nullptr); });
  submit(store(0, 0));
  settle();
  engine.reset();
  EXPECT_TRUE(seen.expired());
}

TEST_F(cuda_loss, G7ADeviceThatIsLostLeavesOthersAlone) {
  auto machine = manual_machine();
  machine.devices = 2;
  stand_in::start(machine);
  make();
  stand_in::lose_context(1);
  submit(store(0, 0));
  settle();
  EXPECT_THAT(reported(), ElementsAre(0));
  EXPECT_EQ(done[0].text, "");
  EXPECT_EQ(engine->lost().code, ec::none);
}

// -- errors that do not stay --------------------------------------------------

TEST_F(cuda_loss, G7AnErrorThatDoesNotStayFailsOneJob) {
  make_busy();
  stand_in::fail_call("cudaMemcpyAsync", 2, cudaErrorInvalidValue);
  for (job_id id = 0; id < 4; ++id)
    submit(store(id, id));
  settle();
  ASSERT_EQ(done.size(), 4u);
  for (const auto& x : done)
    EXPECT_EQ(x.result, x.job == 1 ? copy_result::failed : copy_result::done);
  EXPECT_EQ(engine->lost().code, ec::none);
}

/// MEM-01: an error that was dealt with is nobody else's, whichever call it is.
TEST_F(cuda_loss, Mem01NothingThatFailedShowsInALaterCall) {
  make_busy(copy_path::batch);
  job_id id = 0;
  for (const auto* call :
       {"cudaMemcpyBatchAsync", "cudaMemcpyAsync", "cudaEventRecord",
        "cudaStreamWaitEvent", "cudaLaunchHostFunc", "cudaEventCreateWithFlags",
        "cudaStreamCreateWithPriority", "cudaEventElapsedTime"})
    for (std::uint32_t nth = 1; nth < 4; ++nth) {
      SCOPED_TRACE(std::string{call} + ", call " + std::to_string(nth));
      stand_in::fail_call(call, nth, cudaErrorUnknown);
      for (auto i = 0; i < 3; ++i, ++id) {
        auto next = store(id, id % 64, 2);
        if (i > 0)
          next.after = {id - 1};
        submit(next);
        expect_no_error();
      }
      (void)engine->make_fence(id, {id - 1});
      expect_no_error();
      settle();
      expect_no_error();
      EXPECT_EQ(done.size(), id);
      EXPECT_EQ(engine->lost().code, ec::none);
    }
}

} // namespace
} // namespace kvtide::gpu
