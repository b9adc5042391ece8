// SPDX-License-Identifier: Apache-2.0

#include "kvtide/gpu.hpp"

#include "examples/replay/device_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>

namespace kvtide::replay {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

replay_options with(device_choice device, int index = 0) {
  auto out = replay_options{};
  out.device = device;
  out.device_index = index;
  return out;
}

chosen_device chosen(replay_options opts) {
  auto res = choose_device(std::move(opts));
  if (const auto* exit = std::get_if<early_exit>(&res)) {
    ADD_FAILURE() << exit->text;
    return {};
  }
  return std::get<chosen_device>(std::move(res));
}

TEST(DeviceChoice, LeavesTheHostAlone) {
  const auto res = chosen(with(device_choice::host));
  EXPECT_EQ(res.notice, "");
  EXPECT_FALSE(res.opts.on_gpu());
  EXPECT_EQ(res.opts.kind(), device_kind::host_virtual);
  EXPECT_EQ(res.opts.copy_latency_us, replay_options{}.copy_latency_us);
}

TEST(DeviceChoice, TakesAGpuIfThereIsOneAndSaysSo) {
  const auto count = gpu::device_count();
  const auto res = chosen(with(device_choice::automatic));
  ASSERT_EQ(res.opts.on_gpu(), count.ok());
  EXPECT_NE(res.opts.device, device_choice::automatic);
  if (count) {
    EXPECT_THAT(res.notice, StartsWith("uses GPU 0"));
    EXPECT_EQ(res.opts.kind(), device_kind::cuda);
    EXPECT_FALSE(res.opts.simulated());
    EXPECT_EQ(res.opts.copy_latency_us, 0u);
    EXPECT_EQ(res.opts.copy_bytes_per_second(), 0u);
  } else {
    EXPECT_EQ(res.notice, "uses the host device: " + count.failure().text);
    EXPECT_TRUE(res.opts.simulated());
  }
}

TEST(DeviceChoice, RefusesAGpuThatIsNotThere) {
  const auto count = gpu::device_count();
  const auto index = count ? count.value() : 0;
  const auto res = choose_device(with(device_choice::cuda, index));
  const auto* exit = std::get_if<early_exit>(&res);
  ASSERT_NE(exit, nullptr);
  EXPECT_EQ(exit->code, 2);
  if (count)
    EXPECT_THAT(exit->text, HasSubstr("--device-index: there is no GPU"));
  else
    EXPECT_EQ(exit->text, "kvtide-replay: " + count.failure().text);
  // Who did not insist goes on.
  const auto other = chosen(with(device_choice::automatic, index));
  EXPECT_FALSE(other.opts.on_gpu());
  EXPECT_THAT(other.notice, StartsWith("uses the host device: "));
}

} // namespace
} // namespace kvtide::replay
