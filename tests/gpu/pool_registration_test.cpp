// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/pool_registration.hpp"
#include "tests/gpu/cuda_test.hpp"
#include "tests/gpu/named_pool_home.hpp"

#include <thread>

namespace kvtide::gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class cuda_pool_registration : public cuda_test {
protected:
  cuda_pool_registration()
    : memory(value_of(host_memory::map(8 * page))), first(memory.data()),
      registered(value_of(pool_registration::make(0))) {
    // nop
  }

  void TearDown() override {
    registered.reset();
    cuda_test::TearDown();
  }

  host_memory memory;
  std::byte* first;
  std::shared_ptr<pool_registration> registered;
};

TEST_F(cuda_pool_registration, G5KnowsWhereTheDeviceSeesAPiece) {
  ASSERT_EQ(registered->add(first, page).text, "");
  auto* there = registered->device_address(first, page);
  ASSERT_NE(there, nullptr);
  EXPECT_NE(there, first);
  EXPECT_EQ(stand_in::device_view(there, page), first);
  EXPECT_EQ(registered->device_address(first + 100, 1), there + 100);
}

TEST_F(cuda_pool_registration, G5KnowsNoAddressOfWhatIsNotInOnePiece) {
  ASSERT_EQ(registered->add(first + page, page).text, "");
  ASSERT_EQ(registered->add(first + 2 * page, 2 * page).text, "");
  auto* middle = first + 2 * page;
  EXPECT_EQ(registered->device_address(middle - 1, 2), nullptr);
  EXPECT_NE(registered->device_address(middle - 1, 1), nullptr);
  EXPECT_NE(registered->device_address(middle, 2 * page), nullptr);
  EXPECT_EQ(registered->device_address(middle, 2 * page + 1), nullptr);
  EXPECT_EQ(registered->device_address(first, 1), nullptr);
  EXPECT_EQ(registered->device_address(first + 4 * page, 1), nullptr);
  EXPECT_EQ(registered->device_address(first + 5 * page, 1), nullptr);
}

TEST_F(cuda_pool_registration, G5PinsAPoolThatOutlivesItsProcessLikeAnother) {
  named_pool_home home;
  home.config.registrar = registered;
  home.config.memory.reserve = true;
  home.config.memory.prefault = true;
  for (const auto kept : {0u, 1u}) { // Made, then found.
    ASSERT_EQ(home.open().text, "");
    EXPECT_EQ(home.kept().size(), kept);
    EXPECT_TRUE(home.pool->status().pinned);
    const auto bytes = home.pool->status().memory.bytes;
    EXPECT_NE(registered->device_address(home.base, bytes), nullptr);
    home.store(3, 30);
  }
  home.close();
  EXPECT_EQ(registered->device_address(home.base, 1), nullptr);
}

TEST_F(cuda_pool_registration, WhatWasRemovedIsUnknown) {
  ASSERT_EQ(registered->add(first, page).text, "");
  registered->remove(first);
  registered->remove(first); // Nothing to do.
  EXPECT_EQ(registered->device_address(first, 1), nullptr);
  EXPECT_EQ(registered->add(first, 2 * page).text, "");
  EXPECT_NE(registered->device_address(first + page, 1), nullptr);
}

TEST_F(cuda_pool_registration, ItsEndTakesAllBack) {
  ASSERT_EQ(registered->add(first, page).text, "");
  ASSERT_EQ(registered->add(first + page, page).text, "");
  registered.reset();
  EXPECT_THAT(stand_in::leaks(), IsEmpty());
}

/// MEM-01: a piece that the driver refuses is an error of this call alone.
TEST_F(cuda_pool_registration, Mem01ARefusalLeavesNothingBehind) {
  auto machine = manual_machine();
  machine.largest_registration = 2 * page;
  stand_in::start(machine);
  ASSERT_EQ(registered->add(first, page).text, "");
  const auto refused = registered->add(first + page, 3 * page);
  EXPECT_EQ(refused.code, ec::out_of_memory);
  EXPECT_THAT(refused.text, HasSubstr("cudaHostRegister"));
  expect_no_error();
  EXPECT_EQ(registered->device_address(first + page, 1), nullptr);
  EXPECT_NE(registered->device_address(first, 1), nullptr);
  registered.reset();
  EXPECT_THAT(stand_in::leaks(), IsEmpty());
}

TEST_F(cuda_pool_registration, Mem01APieceWithoutAnAddressIsTakenBack) {
  stand_in::fail_call("cudaHostGetDevicePointer", 1, cudaErrorUnknown);
  const auto refused = registered->add(first, page);
  EXPECT_EQ(refused.code, ec::device_failure);
  expect_no_error();
  EXPECT_THAT(stand_in::leaks(), IsEmpty());
  EXPECT_EQ(registered->device_address(first, 1), nullptr);
}

/// G7: nothing is given back to a context that is gone.
TEST_F(cuda_pool_registration, G7WhatWasAbandonedIsNotTakenBack) {
  ASSERT_EQ(registered->add(first, page).text, "");
  registered->abandon();
  registered->remove(first);
  registered.reset();
  EXPECT_EQ(stand_in::calls("cudaHostUnregister"), 0u);
  EXPECT_EQ(::cudaHostUnregister(first), cudaSuccess);
}

/// G6: pins from whatever thread, though another one captures.
TEST_F(cuda_pool_registration, G6ACaptureElsewhereStaysValid) {
  auto stream = value_of(make_stream());
  ASSERT_EQ(::cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal),
            cudaSuccess);
  std::thread{[this] {
    EXPECT_EQ(registered->add(first, page).text, "");
    registered->remove(first);
  }}.join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(::cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
  EXPECT_EQ(::cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(cuda_pool_registration, ThereIsNoneWithoutSuchADevice) {
  for (const auto no_such : {-1, 1})
    EXPECT_EQ(pool_registration::make(no_such).failure().code, ec::unsupported);
}

} // namespace
} // namespace kvtide::gpu
