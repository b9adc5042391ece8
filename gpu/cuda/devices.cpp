// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/devices.hpp"

#include "gpu/cuda/device_scope.hpp"
#include "gpu/cuda/handles.hpp"

#include <array>
#include <string>

namespace kvtide::gpu {

namespace {

error no_device(const std::string& why) {
  return {ec::unsupported, "no CUDA device was found (" + why
                             + "): use the host device, or see to it that the "
                               "driver is installed and the device is visible "
                               "to this process"};
}

/// The first and the last byte tell: an allocation has no holes.
error check_tensor(const kv_tensor& tensor, std::size_t index, int device) {
  const auto name = "tensor " + std::to_string(index);
  if (tensor.kind == memory_kind::host)
    return {ec::unsupported,
            name
              + " is said to be plain host memory, which is no KV memory of "
                "a GPU: allocate it there, or correct kv_tensor::kind"};
  auto* base = static_cast<std::byte*>(tensor.base);
  for (auto* at : {base, base + (tensor.bytes - 1)}) {
    auto found = cudaPointerAttributes{};
    auto failed = check("cudaPointerGetAttributes",
                        ::cudaPointerGetAttributes(&found, at));
    if (failed.code != ec::none) {
      failed.text = name + ": " + failed.text;
      return failed;
    }
    if (found.type != cudaMemoryTypeDevice)
      return {ec::invalid_argument,
              name + " is said to be device memory, but its "
                + (at == base ? "first" : "last")
                + " byte is not: check kv_tensor::base, bytes and kind"};
    if (found.device != device)
      return {ec::invalid_argument,
              name + " lies on device " + std::to_string(found.device)
                + ", but kv_memory::device is " + std::to_string(device)};
  }
  return {};
}

error check_stream(std::uint64_t stream, std::size_t index, int device) {
  auto found = 0;
  const auto status = ::cudaStreamGetDevice(to_stream(stream), &found);
  const auto name = "kv_memory::streams[" + std::to_string(index) + "]";
  if (auto failed = check("cudaStreamGetDevice", status);
      failed.code != ec::none)
    return {status == cudaErrorInvalidResourceHandle ? ec::invalid_argument
                                                     : failed.code,
            name + " is no stream that can be used: " + failed.text};
  if (found != device)
    return {ec::invalid_argument,
            name + " is one of device " + std::to_string(found)
              + ", but kv_memory::device is " + std::to_string(device)};
  return {};
}

} // namespace

result<int> count_devices() {
  auto count = 0;
  auto failed = check("cudaGetDeviceCount", ::cudaGetDeviceCount(&count));
  if (failed.code != ec::none)
    return no_device(failed.text);
  if (count < 1)
    return no_device("the driver knows none");
  return count;
}

error check_device(int device) {
  auto count = count_devices();
  if (!count)
    return count.failure();
  if (device < 0 || device >= count.value())
    return {ec::unsupported, "there is no CUDA device " + std::to_string(device)
                               + ", only 0 to "
                               + std::to_string(count.value() - 1)};
  return {};
}

result<device_facts> facts_of(int device) {
  if (auto failed = check_device(device); failed.code != ec::none)
    return failed;
  auto all = cudaDeviceProp{};
  if (auto failed = check("cudaGetDeviceProperties",
                          ::cudaGetDeviceProperties(&all, device));
      failed.code != ec::none)
    return failed;
  auto out = device_facts{};
  out.name = all.name;
  out.multiprocessors = all.multiProcessorCount;
  auto id = std::array<char, 32>{};
  if (auto failed = check("cudaDeviceGetPCIBusId",
                          ::cudaDeviceGetPCIBusId(
                            id.data(), static_cast<int>(id.size()), device));
      failed.code != ec::none)
    return failed;
  out.pci_bus_id = id.data();
  if (auto failed = check("cudaDriverGetVersion",
                          ::cudaDriverGetVersion(&out.driver_version));
      failed.code != ec::none)
    return failed;
  if (auto failed = check("cudaRuntimeGetVersion",
                          ::cudaRuntimeGetVersion(&out.runtime_version));
      failed.code != ec::none)
    return failed;
  // A driver that does not know the attribute knows no node.
  auto node = -1;
  const auto status
    = ::cudaDeviceGetAttribute(&node, cudaDevAttrHostNumaId, device);
  ignore(status);
  if (status == cudaSuccess && node >= 0)
    out.numa_node = node;
  return out;
}

error check_on_device(const kv_memory& memory) {
  if (auto failed = check_device(memory.device); failed.code != ec::none)
    return failed;
  const device_scope scope{memory.device};
  for (std::size_t i = 0; i < memory.tensors.size(); ++i) {
    auto refused = check_tensor(memory.tensors[i], i, memory.device);
    if (refused.code != ec::none)
      return refused;
  }
  for (std::size_t i = 0; i < memory.streams.size(); ++i) {
    auto refused = check_stream(memory.streams[i], i, memory.device);
    if (refused.code != ec::none)
      return refused;
  }
  return {};
}

} // namespace kvtide::gpu
