// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/devices.hpp"
#include "gpu/cuda/status.hpp"
#include "tests/gpu/cuda_machine.hpp"

#include <gtest/gtest.h>

namespace kvtide::gpu {

void start_cuda_machine() {
  // nop
}

void check_cuda_machine() {
  EXPECT_EQ(check("cudaDeviceSynchronize", ::cudaDeviceSynchronize()).text, "");
}

bool host_functions_share_a_thread() {
  return true;
}

std::string missing_cuda_machine() {
  const auto count = count_devices();
  return count ? std::string{} : count.failure().text;
}

std::size_t many_fragments() {
  return 10'000;
}

} // namespace kvtide::gpu
