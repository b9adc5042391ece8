// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/cuda_machine.hpp"
#include "tests/gpu/cuda_stand_in/stand_in.hpp"

#include <gmock/gmock.h>

namespace kvtide::gpu {

void start_cuda_machine() {
  auto wanted = stand_in::settings{};
  // Whoever takes one address for the other is found out.
  wanted.registered_memory_has_other_device_address = true;
  wanted.threads = 4; // Some tests hold one.
  stand_in::start(wanted);
}

void check_cuda_machine() {
  EXPECT_THAT(stand_in::refusals(), ::testing::IsEmpty());
  EXPECT_THAT(stand_in::leaks(), ::testing::IsEmpty());
}

bool host_functions_share_a_thread() {
  return false;
}

std::string missing_cuda_machine() {
  return {};
}

std::size_t many_fragments() {
  return 1'000; // Threads change places for each of them.
}

} // namespace kvtide::gpu
