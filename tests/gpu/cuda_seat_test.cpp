// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda_seat.hpp"
#include "tests/gpu/cuda_test.hpp"

namespace kvtide::gpu {
namespace {

using cuda_seat_choices = cuda_test;

TEST_F(cuda_seat_choices, PinsThePoolItselfUnlessThatIsDoneForIt) {
  const auto alone = value_of(cuda_seat::make(0));
  EXPECT_NE(alone.pool_config({}, page).registrar, nullptr);
  const auto shared = value_of(pool_registration::make(0));
  const auto one_of_many = value_of(cuda_seat::make(0, shared));
  EXPECT_EQ(one_of_many.pool_config({}, page).registrar, shared);
}

} // namespace
} // namespace kvtide::gpu
