// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a device has on a GPU, with a stand-in for the GPU.

#include "kvtide/gpu.hpp"

#include "actors/cuda_seat.hpp"
#include "gpu/kv_registration.hpp"
#include "tests/gpu/cuda_stand_in/stand_in.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kvtide {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class cuda_seat_test : public ::testing::Test {
protected:
  static constexpr std::uint64_t bytes = 4'096;

  cuda_seat_test() {
    stand_in::start();
    tensor_.emplace(gpu::device_memory::allocate(0, bytes).value());
    stream_.emplace(gpu::compute_stream::make(0).value());
    memory.tensors
      = {{tensor_->data(), bytes, tensor_->kind(), 1, bytes, bytes}};
    memory.references = {{0, 0, 0, 0, bytes}};
    memory.streams = {stream_->handle()};
  }

  void TearDown() override {
    stream_.reset();
    tensor_.reset();
    EXPECT_THAT(stand_in::refusals(), IsEmpty());
    EXPECT_THAT(stand_in::leaks(), IsEmpty());
  }

  kv_memory memory;

private:
  std::optional<gpu::device_memory> tensor_;
  std::optional<gpu::compute_stream> stream_;
};

TEST_F(cuda_seat_test, S6RecordsAnEventOfEachRegisteredStream) {
  const auto uut = seat_for(memory, {}, nullptr);
  ASSERT_TRUE(uut) << uut.failure().text;
  const auto calls = calls_of(uut.value(), memory.streams);
  const auto made = calls.record_all();
  ASSERT_TRUE(made) << made.failure().text;
  EXPECT_THAT(made.value(), SizeIs(1));
}

/// Without one a step would end with no event, and its stores would overtake
/// its compute.
TEST_F(cuda_seat_test, S6RefusesMemoryWithoutStreams) {
  memory.streams.clear();
  const auto refused = seat_for(memory, {}, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code, ec::invalid_argument);
  EXPECT_THAT(refused.failure().text, HasSubstr("kv_memory::streams is empty"));
}

/// Handles of steps before a registration name nothing that comes later.
TEST_F(cuda_seat_test, G2KeepsTheEventsOfAnEarlierRegistration) {
  const auto before = seat_for(memory, {}, nullptr);
  ASSERT_TRUE(before) << before.failure().text;
  const auto after = seat_for(memory, before.value(), nullptr);
  ASSERT_TRUE(after) << after.failure().text;
  EXPECT_EQ(after.value().events(), before.value().events());
}

TEST_F(cuda_seat_test, StaysOnItsGpu) {
  const auto before = seat_for(memory, {}, nullptr);
  ASSERT_TRUE(before) << before.failure().text;
  memory.device = 1;
  const auto refused = seat_for(memory, before.value(), nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code, ec::invalid_argument);
  EXPECT_THAT(refused.failure().text, HasSubstr("was 0 before and is now 1"));
}

TEST_F(cuda_seat_test, HandsFaultsToItsEngine) {
  const auto uut = seat_for(memory, {}, nullptr);
  ASSERT_TRUE(uut) << uut.failure().text;
  auto opts = cuda_options{};
  opts.kernel_below = 0; // Measures nothing.
  opts.slice_bytes = bytes;
  auto wanted = gpu::registration_config{};
  wanted.domain = gpu::memory_domain::any;
  wanted.pool = uut.value().pool_config(opts, bytes);
  const auto pool = std::make_shared<gpu::host_pool_memory>();
  const auto opened = gpu::open_kv(memory, wanted, *pool);
  ASSERT_TRUE(opened) << opened.failure().text;
  auto made = uut.value().make_engine(
    opts, [] {}, pool,
    [](job_id, job_kind) { return gpu::copy_fault{gpu::fault_kind::fail}; });
  ASSERT_TRUE(made) << made.failure().text;
  auto& engine = *made.value();
  auto row = job_row{};
  row.blocks = {0};
  auto what = job{};
  what.rows = std::vector{row};
  auto copies = gpu::make_copies(what, opened.value());
  ASSERT_TRUE(copies) << copies.failure().text;
  ASSERT_EQ(engine.submit(std::move(copies).value()), ec::none);
  auto done = std::vector<gpu::completion>{};
  auto fences = std::vector<step_id>{};
  while (done.empty())
    engine.poll(done, fences);
  EXPECT_THAT(done[0].text, HasSubstr("injected"));
}

} // namespace
} // namespace kvtide
