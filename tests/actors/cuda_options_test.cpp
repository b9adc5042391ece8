// SPDX-License-Identifier: Apache-2.0

/// @file
/// `device_kind::cuda` where no GPU is needed to tell right from wrong.

#include "kvtide/runtime.hpp"

#include "gpu/cuda/devices.hpp"
#include "gpu/cuda_choices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>

using namespace std::chrono_literals;
using ::testing::HasSubstr;

namespace kvtide {
namespace {

std::string refused(const std::function<void(cuda_options&)>& change) {
  auto opts = options{};
  change(opts.cuda);
  const auto made = runtime::start(opts);
  if (made)
    return "started";
  EXPECT_EQ(made.failure().code, ec::invalid_options);
  return made.failure().text;
}

TEST(CudaOptions, AreCheckedWhateverTheDevice) {
  EXPECT_EQ(refused([](cuda_options&) {}), "started");
  EXPECT_THAT(refused([](auto& x) { x.kernel_blocks = 0; }),
              HasSubstr("cuda.kernel_blocks is 0;"));
  EXPECT_THAT(refused([](auto& x) { x.kernel_blocks = 1'025; }),
              HasSubstr("cuda.kernel_blocks is 1025;"));
  EXPECT_THAT(refused([](auto& x) { x.streams_per_direction = 0; }),
              HasSubstr("cuda.streams_per_direction is 0;"));
  EXPECT_THAT(refused([](auto& x) { x.streams_per_direction = 17; }),
              HasSubstr("cuda.streams_per_direction is 17;"));
  EXPECT_THAT(refused([](auto& x) {
                x.slice_bytes = 8'192;
                x.bytes_in_flight = 4'096;
              }),
              HasSubstr("cuda.bytes_in_flight is 4096;"));
  EXPECT_EQ(refused([](auto& x) { x.slice_bytes = 4'096; }), "started");
  EXPECT_THAT(refused([](auto& x) { x.slice_bytes = 4'095; }),
              HasSubstr("cuda.slice_bytes is 4095;"));
  EXPECT_THAT(refused([](auto& x) { x.fences = static_cast<fence_wait>(77); }),
              HasSubstr("cuda.fences"));
  EXPECT_THAT(refused([](auto& x) { x.prefault_threads = 257; }),
              HasSubstr("cuda.prefault_threads is 257;"));
}

TEST(CudaOptions, ReachTheEngine) {
  auto opts = cuda_options{};
  opts.path = copy_path::plain;
  opts.kernel_below = 1;
  opts.kernel_blocks = 2;
  opts.streams_per_direction = 3;
  opts.slice_bytes = 4;
  opts.bytes_in_flight = 5;
  opts.fences = fence_wait::host;
  opts.calibration_file = "file";
  const auto said = gpu::engine_config_of(opts);
  EXPECT_EQ(said.path, copy_path::plain);
  EXPECT_EQ(said.kernel_below, 1u);
  EXPECT_EQ(said.kernel_blocks, 2u);
  EXPECT_EQ(said.streams_per_direction, 3u);
  EXPECT_EQ(said.slice_bytes, 4u);
  EXPECT_EQ(said.bytes_in_flight, 5u);
  EXPECT_EQ(said.fences, fence_wait::host);
  EXPECT_EQ(said.calibration_file, "file");
}

// With a GPU here it starts, and without one it says why there is none.
TEST(CudaDevice, StartsOnlyWhereThereIsAGpu) {
  auto opts = options{};
  opts.device = device_kind::cuda;
  opts.host_bytes = 1 << 20;
  const auto there = gpu::count_devices();
  const auto made = runtime::start(opts);
  ASSERT_EQ(static_cast<bool>(made), static_cast<bool>(there));
  if (!made) {
    EXPECT_EQ(made.failure().code, ec::unsupported);
    EXPECT_EQ(made.failure().text, there.failure().text);
  }
}

TEST(CudaDevice, NeedsNoGpuWithoutACache) {
  auto opts = options{};
  opts.device = device_kind::cuda;
  auto made = runtime::start(opts);
  ASSERT_TRUE(made) << made.failure().text;
  auto& side = made.value().local_rank(0);
  const auto event = side.record_event(0);
  ASSERT_TRUE(event);
  EXPECT_NE(event.value(), 0u);
  // Events of the host are none of this device.
  EXPECT_EQ(side.make_event().failure().code, ec::unsupported);
  side.complete_event(1);
  const auto heard = side.poll();
  ASSERT_EQ(heard.size(), 1u);
  const auto* failed = std::get_if<rank_failed>(&heard[0]);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->reason.code, ec::unsupported);
}

TEST(CudaDevice, HostDevicesRecordNoEvents) {
  for (const auto kind : {device_kind::host, device_kind::host_virtual})
    for (const auto bytes : {0, 1 << 20}) {
      auto opts = options{};
      opts.device = kind;
      opts.host_bytes = static_cast<std::uint64_t>(bytes);
      auto made = runtime::start(opts);
      ASSERT_TRUE(made);
      const auto event = made.value().local_rank(0).record_event(0);
      ASSERT_FALSE(event);
      EXPECT_EQ(event.failure().code, ec::unsupported);
    }
}

} // namespace
} // namespace kvtide
