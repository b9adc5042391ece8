// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a device has on a GPU, with a stand-in for the GPU.

#include "kvtide/gpu.hpp"

#include "actors/cuda_seat.hpp"
#include "tests/gpu/cuda_stand_in/stand_in.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

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
    uut = {};
    stream_.reset();
    tensor_.reset();
    EXPECT_THAT(stand_in::refusals(), IsEmpty());
    EXPECT_THAT(stand_in::leaks(), IsEmpty());
  }

  cuda_seat uut;
  kv_memory memory;

private:
  std::optional<gpu::device_memory> tensor_;
  std::optional<gpu::compute_stream> stream_;
};

TEST_F(cuda_seat_test, S6RecordsAnEventOfEachRegisteredStream) {
  ASSERT_EQ(uut.open(memory, nullptr).text, "");
  const auto calls = uut.calls(memory.streams);
  const auto made = calls.record_all();
  ASSERT_TRUE(made) << made.failure().text;
  EXPECT_THAT(made.value(), SizeIs(1));
}

/// Without one a step would end with no event, and its stores would overtake
/// its compute.
TEST_F(cuda_seat_test, S6RefusesMemoryWithoutStreams) {
  auto none = memory;
  none.streams.clear();
  const auto refused = uut.open(none, nullptr);
  EXPECT_EQ(refused.code, ec::invalid_argument);
  EXPECT_THAT(refused.text, HasSubstr("kv_memory::streams is empty"));
  EXPECT_EQ(uut.open(memory, nullptr).text, "");
}

} // namespace
} // namespace kvtide
