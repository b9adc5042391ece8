// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/cuda_stand_in/fixture.hpp"

#include <limits>
#include <set>

namespace kvtide::stand_in {
namespace {

struct stand_in_copies : machine_test {};

/// Either form of the batched copy.
cudaError_t copy_batch(std::vector<void*> to, std::vector<const void*> from,
                       std::vector<std::size_t> sizes,
                       std::vector<cudaMemcpyAttributes> attributes,
                       std::vector<std::size_t> first_copies,
                       cudaStream_t stream,
                       [[maybe_unused]] std::size_t* failed = nullptr) {
#if CUDART_VERSION >= 13000
  return cudaMemcpyBatchAsync(to.data(), from.data(), sizes.data(),
                              sizes.size(), attributes.data(),
                              first_copies.data(), attributes.size(), stream);
#else
  std::size_t index = 0;
  return cudaMemcpyBatchAsync(to.data(), const_cast<void**>(from.data()),
                              sizes.data(), sizes.size(), attributes.data(),
                              first_copies.data(), attributes.size(),
                              failed != nullptr ? failed : &index, stream);
#endif
}

cudaMemcpyAttributes in_order(cudaMemcpySrcAccessOrder order) {
  cudaMemcpyAttributes made{};
  made.srcAccessOrder = order;
  return made;
}

const auto stream_order = in_order(cudaMemcpySrcAccessOrderStream);

/// CUDA Runtime API, API synchronization behavior: a copy between device memory
/// and page-locked memory returns before it is made.
TEST_F(stand_in_copies, ACopyIsMadeLaterAndInTwoHalves) {
  auto* host = make_host_bytes(64, 7);
  auto* device = make_device_bytes(64);
  const auto stream = make_stream();
  copy(device, host, 64, stream);
  EXPECT_EQ(count_of(device, 64, 7), 0u);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  run(0);
  EXPECT_EQ(count_of(device, 64, 7), 32u);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  run(0);
  EXPECT_EQ(count_of(device, 64, 7), 64u);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
}

/// CUDA Runtime API, API synchronization behavior: with pageable memory, the
/// call waits for what is in front of it, and for the copy.
TEST_F(stand_in_copies, ACopyOfPageableMemoryIsMadeDuringTheCall) {
  std::vector<std::byte> pageable(64, std::byte{3});
  auto* device = make_device_bytes(64);
  const auto stream = make_stream();
  EXPECT_EQ(cudaMemsetAsync(device, 1, 64, stream), cudaSuccess);
  copy(device, pageable.data(), 64, stream);
  EXPECT_EQ(count_of(device, 64, 3), 64u);
  EXPECT_EQ(pending(), 0u);
  EXPECT_EQ(warnings().size(), 1u);
}

/// CUDA programming guide, page-locked memory: each registration is a mapping
/// of its own, and a copy has to lie within one.
TEST_F(stand_in_copies, ACopyAcrossTwoRegistrationsIsRefused) {
  const auto pages = make_pages(2);
  auto* device = make_device_bytes(8192);
  const auto stream = make_stream();
  EXPECT_EQ(cudaHostRegister(pages.get(), 4096, 0), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(pages.get() + 4096, 4096, 0), cudaSuccess);
  EXPECT_EQ(
    cudaMemcpyAsync(device, pages.get() + 4000, 200, cudaMemcpyDefault, stream),
    cudaErrorInvalidValue);
  expect_refusal("one allocation or registration");
  copy(device, pages.get() + 4000, 96, stream);
  run_all();
  EXPECT_EQ(cudaHostUnregister(pages.get()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(pages.get() + 4096), cudaSuccess);
}

TEST_F(stand_in_copies, ACopyAcrossTheEndOfAnAllocationIsRefused) {
  auto* host = make_host_bytes(8192, 0);
  auto* device = make_device_bytes(64);
  const auto stream = make_stream();
  EXPECT_EQ(cudaMemcpyAsync(device + 1, host, 64, cudaMemcpyDefault, stream),
            cudaErrorInvalidValue);
  expect_refusal("one allocation or registration");
  // Begins in front of an allocation, and reaches into it.
  EXPECT_EQ(cudaMemcpyAsync(device - 8, host, 16, cudaMemcpyDefault, stream),
            cudaErrorInvalidValue);
  expect_refusal("one allocation or registration");
}

/// CUDA Runtime API, cudaMemcpyAsync: a kind that does not match the pointers
/// has no defined result; 21 is for what is no kind at all.
TEST_F(stand_in_copies, TheKindMustBeTrue) {
  auto* host = make_host_bytes(64, 0);
  auto* device = make_device_bytes(64);
  const auto stream = make_stream();
  EXPECT_EQ(cudaMemcpyAsync(device, host, 64, cudaMemcpyDeviceToHost, stream),
            cudaErrorInvalidValue);
  expect_refusal("kind");
  EXPECT_EQ(cudaMemcpyAsync(device, host, 64, cudaMemcpyKind(5), stream),
            cudaErrorInvalidMemcpyDirection);
  expect_refusal("kind");
  EXPECT_EQ(cudaMemcpyAsync(device, host, 64, cudaMemcpyHostToDevice, stream),
            cudaSuccess);
}

/// CUDA Runtime API, cudaMemcpyBatchAsync: the batch is ordered with the
/// stream, and copies in it are not ordered with each other.
TEST_F(stand_in_copies, FragmentsOfABatchRunInAnyOrder) {
  std::set<std::size_t> first_to_finish;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    start(manual(seed));
    auto* host = make_host_bytes(300, 7);
    auto* device = make_device_bytes(300);
    const auto stream = make_stream();
    EXPECT_EQ(copy_batch({device, device + 100, device + 200},
                         {host, host + 100, host + 200}, {100, 100, 100},
                         {stream_order}, {0}, stream),
              cudaSuccess);
    for (bool found = false; !found && runnable() > 0;) {
      run(0);
      for (std::size_t i = 0; i < 3 && !found; ++i)
        if (count_of(device + 100 * i, 100, 7) == 100) {
          first_to_finish.insert(i);
          found = true;
        }
    }
    run_all();
    EXPECT_EQ(count_of(device, 300, 7), 300u);
  }
  EXPECT_EQ(first_to_finish.size(), 3u);
}

/// CUDA Runtime API, cudaMemcpyBatchAsync: with access order "stream" the
/// source is read when the stream gets there; with the others, it may be read
/// at once, so that what the stream writes into the source first is missed.
TEST_F(stand_in_copies, OnlyStreamOrderSeesWhatTheStreamWroteBefore) {
  for (const auto order :
       {cudaMemcpySrcAccessOrderStream, cudaMemcpySrcAccessOrderDuringApiCall,
        cudaMemcpySrcAccessOrderAny}) {
    start(manual());
    auto* device = make_device_bytes(64);
    auto* host = make_host_bytes(64, 1);
    auto* target = make_device_bytes(64);
    const auto stream = make_stream();
    EXPECT_EQ(cudaMemsetAsync(device, 9, 64, stream), cudaSuccess);
    copy(host, device, 64, stream);
    EXPECT_EQ(
      copy_batch({target}, {host}, {64}, {in_order(order)}, {0}, stream),
      cudaSuccess);
    run_all();
    EXPECT_EQ(count_of(target, 64, 9) == 64,
              order == cudaMemcpySrcAccessOrderStream);
  }
}

/// CUDA Runtime API, cudaMemcpyBatchAsync: "during the call" is for sources
/// that end with the caller's scope, so they may be pageable.
TEST_F(stand_in_copies, ASourceReadDuringTheCallMayGoAfterIt) {
  auto* target = make_device_bytes(64);
  const auto stream = make_stream();
  {
    std::vector<std::byte> source(64, std::byte{5});
    EXPECT_EQ(copy_batch({target}, {source.data()}, {64},
                         {in_order(cudaMemcpySrcAccessOrderDuringApiCall)}, {0},
                         stream),
              cudaSuccess);
  }
  run_all();
  EXPECT_EQ(count_of(target, 64, 5), 64u);
}

/// CUDA Runtime API, cudaMemcpyBatchAsync: never on the legacy default stream.
TEST_F(stand_in_copies, ABatchOnTheLegacyStreamIsRefused) {
  auto* host = make_host_bytes(64, 1);
  auto* device = make_device_bytes(64);
  for (const auto stream : {cudaStream_t{nullptr}, cudaStreamLegacy}) {
    std::size_t failed = 0;
    EXPECT_EQ(
      copy_batch({device}, {host}, {64}, {stream_order}, {0}, stream, &failed),
      cudaErrorInvalidValue);
    expect_refusal("legacy");
#if CUDART_VERSION < 13000
    EXPECT_EQ(failed, std::numeric_limits<std::size_t>::max());
#endif
  }
}

/// CUDA Runtime API, cudaMemcpyBatchAsync: attributes are given for the first
/// of the copies they apply to; the first is 0, they ascend, all are copies.
TEST_F(stand_in_copies, TheAttributesOfABatchMustCoverItInOrder) {
  auto* host = make_host_bytes(64, 1);
  auto* device = make_device_bytes(64);
  const auto stream = make_stream();
  const std::vector<void*> to{device, device + 32};
  const std::vector<const void*> from{host, host + 32};
  const auto submit = [&](std::vector<cudaMemcpyAttributes> attributes,
                          std::vector<std::size_t> first_copies) {
    return copy_batch(to, from, {32, 32}, std::move(attributes),
                      std::move(first_copies), stream);
  };
  EXPECT_EQ(submit({}, {}), cudaErrorInvalidValue);
  expect_refusal("numAttrs");
  EXPECT_EQ(submit({stream_order, stream_order, stream_order}, {0, 1, 2}),
            cudaErrorInvalidValue);
  expect_refusal("numAttrs");
  EXPECT_EQ(submit({stream_order}, {1}), cudaErrorInvalidValue);
  expect_refusal("begin with 0");
  EXPECT_EQ(submit({stream_order, stream_order}, {0, 0}),
            cudaErrorInvalidValue);
  expect_refusal("ascend");
  EXPECT_EQ(submit({stream_order, stream_order}, {0, 2}),
            cudaErrorInvalidValue);
  expect_refusal("less than count");
  EXPECT_EQ(submit({stream_order, cudaMemcpyAttributes{}}, {0, 1}),
            cudaErrorInvalidValue);
  expect_refusal("srcAccessOrder");
  EXPECT_EQ(copy_batch({}, {}, {}, {stream_order}, {0}, stream),
            cudaErrorInvalidValue);
  expect_refusal("no copies");
  EXPECT_EQ(submit({stream_order, stream_order}, {0, 1}), cudaSuccess);
}

/// CUDA Runtime API, cudaMemcpyBatchAsync: 12.8 says which copy is wrong.
TEST_F(stand_in_copies, AWrongCopyFailsTheWholeBatch) {
  auto* host = make_host_bytes(64, 1);
  auto* device = make_device_bytes(64);
  std::vector<std::byte> pageable(64);
  const auto stream = make_stream();
  const auto submit = [&](void* to, const void* from, std::size_t bytes) {
    std::size_t failed = 77;
    EXPECT_EQ(copy_batch({device, to}, {host, from}, {32, bytes},
                         {stream_order}, {0}, stream, &failed),
              cudaErrorInvalidValue);
#if CUDART_VERSION < 13000
    EXPECT_EQ(failed, 1u);
#endif
  };
  submit(device, host, 0);
  expect_refusal("no bytes");
  submit(nullptr, host, 32);
  expect_refusal("null");
  submit(device, pageable.data(), 32);
  expect_refusal("not registered");
  submit(pageable.data(), host, 32);
  expect_refusal("not registered");
  submit(device + 40, host, 32);
  expect_refusal("one allocation");
  EXPECT_EQ(pending(), 0u);
}

} // namespace
} // namespace kvtide::stand_in
