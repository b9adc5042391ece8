// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/devices.hpp"
#include "tests/gpu/cuda_test.hpp"

namespace kvtide::gpu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class cuda_devices : public cuda_test {
protected:
  static void start(int count, cudaError_t without = cudaErrorNoDevice) {
    auto machine = manual_machine();
    machine.devices = count;
    machine.without_devices = without;
    machine.numa_node = 3;
    stand_in::start(machine);
  }
};

/// Whatever keeps the driver from counting: there is no GPU here, and the
/// sentence says why and what to do.
TEST_F(cuda_devices, NoDeviceIsNoFailureOfTheProcess) {
  for (const auto why : {cudaErrorNoDevice, cudaErrorInsufficientDriver}) {
    start(0, why);
    const auto count = count_devices();
    ASSERT_FALSE(count.ok());
    EXPECT_EQ(count.failure().code, ec::unsupported);
    EXPECT_THAT(count.failure().text, AllOf(HasSubstr(::cudaGetErrorName(why)),
                                            HasSubstr("use the host device")));
    EXPECT_EQ(check_device(0).code, ec::unsupported);
    EXPECT_EQ(facts_of(0).failure().code, ec::unsupported);
    EXPECT_EQ(compute_events::make(0).failure().code, ec::unsupported);
    EXPECT_EQ(pool_registration::make(0).failure().code, ec::unsupported);
  }
  // Its last error is the driver's own, which no call can take back.
  expects_loss = true;
}

TEST_F(cuda_devices, AnyErrorOfTheCountMeansNone) {
  for (const auto code : {cudaErrorUnknown, cudaErrorMemoryAllocation,
                          cudaErrorInitializationError}) {
    start(1);
    stand_in::fail_call("cudaGetDeviceCount", 1, code);
    const auto count = count_devices();
    ASSERT_FALSE(count.ok());
    EXPECT_EQ(count.failure().code, ec::unsupported);
    expect_no_error();
  }
}

TEST_F(cuda_devices, SaysWhichDevicesThereAre) {
  start(2);
  EXPECT_EQ(value_of(count_devices()), 2);
  EXPECT_EQ(check_device(1).text, "");
  EXPECT_THAT(check_device(2).text, HasSubstr("only 0 to 1"));
  EXPECT_EQ(check_device(-1).code, ec::unsupported);
}

TEST_F(cuda_devices, KnowsTheFactsOfADevice) {
  start(2);
  const auto facts = value_of(facts_of(1));
  EXPECT_EQ(facts.name, "stand-in device 1");
  EXPECT_EQ(facts.pci_bus_id, "0000:19:00.0");
  EXPECT_EQ(facts.driver_version, CUDART_VERSION);
  EXPECT_EQ(facts.runtime_version, CUDART_VERSION);
  EXPECT_EQ(facts.multiprocessors, 132);
  EXPECT_EQ(facts.numa_node, 3);
}

/// MEM-01: older drivers do not know what they are asked.
TEST_F(cuda_devices, Mem01AnUnknownNumaNodeIsNoError) {
  start(1);
  stand_in::fail_call("cudaDeviceGetAttribute", 1, cudaErrorInvalidValue);
  EXPECT_FALSE(value_of(facts_of(0)).numa_node.has_value());
  expect_no_error();
  stand_in::start(manual_machine()); // Says -1.
  EXPECT_FALSE(value_of(facts_of(0)).numa_node.has_value());
}

TEST_F(cuda_devices, Mem01AFactThatCannotBeHadIsSaid) {
  start(1);
  for (const auto* call : {"cudaGetDeviceProperties", "cudaDeviceGetPCIBusId",
                           "cudaDriverGetVersion", "cudaRuntimeGetVersion"}) {
    stand_in::fail_call(call, 1, cudaErrorUnknown);
    EXPECT_THAT(facts_of(0).failure().text, HasSubstr(call));
    expect_no_error();
  }
}

// -- what a rank registers ----------------------------------------------------

class cuda_rank_memory : public cuda_devices {
protected:
  cuda_rank_memory() {
    start(2);
    EXPECT_EQ(::cudaSetDevice(0), cudaSuccess); // In use, so it is put back.
    const device_scope scope{1};
    buffer = value_of(make_device_buffer(page));
    stream = value_of(make_stream());
    memory.device = 1;
    memory.tensors.resize(2);
    for (auto& x : memory.tensors) {
      x.base = buffer.get();
      x.bytes = page;
      x.kind = memory_kind::device;
    }
    memory.streams = {to_number(stream.get())};
  }

  void TearDown() override {
    {
      const device_scope scope{1};
      buffer = {};
      stream = {};
    }
    cuda_devices::TearDown();
  }

  void expect_refused(const std::string& part) {
    const auto refused = check_on_device(memory);
    EXPECT_EQ(refused.code, ec::invalid_argument);
    EXPECT_THAT(refused.text, HasSubstr(part));
    expect_no_error();
  }

  device_buffer buffer;
  cuda_stream stream;
  kv_memory memory;
};

TEST_F(cuda_rank_memory, G8AcceptsWhatLiesOnItsDevice) {
  EXPECT_EQ(check_on_device(memory).text, "");
  memory.tensors[1].kind = memory_kind::device_mapped;
  EXPECT_EQ(check_on_device(memory).text, "");
}

/// Addresses stay while mappings vanish: nothing there is not memory.
TEST_F(cuda_rank_memory, G8RefusesWhatIsNotMapped) {
  {
    const device_scope scope{1};
    buffer = {};
  }
  expect_refused("tensor 0");
}

TEST_F(cuda_rank_memory, G8RefusesATensorThatEndsElsewhere) {
  memory.tensors[1].bytes = page + 1;
  expect_refused("tensor 1 is said to be device memory, but its last byte");
}

TEST_F(cuda_rank_memory, G8RefusesMemoryOfTheHost) {
  auto pinned = value_of(make_pinned_buffer(page));
  memory.tensors[1].base = pinned.get();
  expect_refused("tensor 1");
  auto plain = std::vector<std::byte>(page);
  memory.tensors[1].base = plain.data();
  expect_refused("its first byte");
}

TEST_F(cuda_rank_memory, G8RefusesMemoryThatIsSaidToBeTheHosts) {
  memory.tensors[1].kind = memory_kind::host;
  const auto refused = check_on_device(memory);
  EXPECT_EQ(refused.code, ec::unsupported);
  EXPECT_THAT(refused.text, HasSubstr("tensor 1"));
}

TEST_F(cuda_rank_memory, G8RefusesMemoryOfAnotherDevice) {
  auto other = value_of(make_device_buffer(page)); // Device 0 is current.
  memory.tensors[1].base = other.get();
  expect_refused("tensor 1 lies on device 0, but kv_memory::device is 1");
}

TEST_F(cuda_rank_memory, G6RefusesStreamsOfAnotherDevice) {
  auto other = value_of(make_stream());
  memory.streams.push_back(to_number(other.get()));
  expect_refused("streams[1] is one of device 0");
}

TEST_F(cuda_rank_memory, G6RefusesStreamsThatAreNone) {
  memory.streams.push_back(12'345);
  const auto refused = check_on_device(memory);
  expected_refusals = 1;
  EXPECT_EQ(refused.code, ec::invalid_argument);
  EXPECT_THAT(refused.text, HasSubstr("streams[1]"));
}

TEST_F(cuda_rank_memory, RefusesADeviceThatIsNotThere) {
  memory.device = 2;
  EXPECT_EQ(check_on_device(memory).code, ec::unsupported);
}

} // namespace
} // namespace kvtide::gpu
