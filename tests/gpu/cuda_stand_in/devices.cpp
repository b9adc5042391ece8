// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/cuda_stand_in/machine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace kvtide::stand_in {
namespace {

constexpr int first_bus = 0x18;

cudaError_t check_device(machine& m, int device) {
  if (m.wanted.devices == 0)
    return m.wanted.without_devices;
  if (device < 0 || device >= m.wanted.devices)
    return m.refuse(cudaErrorInvalidDevice, "there is no such device");
  return cudaSuccess;
}

/// What an H200 would say, of what kvtide might ask.
int attribute(const settings& wanted, int name, int device) {
  if (const auto own = wanted.attributes.find(name);
      own != wanted.attributes.end())
    return own->second;
  switch (name) {
    case cudaDevAttrMaxThreadsPerBlock:
      return 1024;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMultiProcessorCount:
      return 132;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return 2048;
    case cudaDevAttrAsyncEngineCount:
      return 3;
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrMemoryPoolsSupported:
      return 1;
    case cudaDevAttrPciBusId:
      return first_bus + device;
    case cudaDevAttrComputeCapabilityMajor:
      return 9;
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
      return wanted.registered_memory_has_other_device_address ? 0 : 1;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return 227 << 10;
    case cudaDevAttrHostNumaId:
      return wanted.numa_node;
    default:
      return 0;
  }
}

} // namespace
} // namespace kvtide::stand_in

using namespace kvtide::stand_in;

cudaError_t cudaDriverGetVersion(int* driverVersion) {
  return call("cudaDriverGetVersion", needs::nothing, [&](machine& m) {
    if (driverVersion == nullptr)
      return m.refuse(cudaErrorInvalidValue, "nowhere to put the version");
    *driverVersion = m.wanted.driver_version;
    return cudaSuccess;
  });
}

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  return call("cudaRuntimeGetVersion", needs::nothing, [&](machine& m) {
    if (runtimeVersion == nullptr)
      return m.refuse(cudaErrorInvalidValue, "nowhere to put the version");
    *runtimeVersion = m.wanted.runtime_version;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", needs::nothing, [&](machine& m) {
    if (count == nullptr)
      return m.refuse(cudaErrorInvalidValue, "nowhere to put the count");
    *count = m.wanted.devices;
    return m.wanted.devices > 0 ? cudaSuccess : m.wanted.without_devices;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", needs::nothing, [&](machine& m) {
    if (device == nullptr)
      return m.refuse(cudaErrorInvalidValue, "nowhere to put the device");
    if (m.wanted.devices == 0)
      return m.wanted.without_devices;
    *device = m.me().device;
    return cudaSuccess;
  });
}

// CUDA Runtime API, cudaSetDevice: for the calling thread only. Since 12.0 it
// makes the device's context, so it reports one that is lost.
cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", needs::nothing, [&](machine& m) {
    if (const auto code = check_device(m, device); code != cudaSuccess)
      return code;
    m.me().device = device;
    m.contexts.insert(device);
    return m.context_of(device);
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr,
                                   int device) {
  return call("cudaDeviceGetAttribute", needs::nothing, [&](machine& m) {
    if (const auto code = check_device(m, device); code != cudaSuccess)
      return code;
    if (value == nullptr || attr < 1)
      return m.refuse(cudaErrorInvalidValue, "no pointer, or no attribute");
    *value = attribute(m.wanted, attr, device);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  return call("cudaGetDeviceProperties", needs::nothing, [&](machine& m) {
    if (const auto code = check_device(m, device); code != cudaSuccess)
      return code;
    if (prop == nullptr)
      return m.refuse(cudaErrorInvalidValue, "nowhere to put the properties");
    const auto ask
      = [&](int name) { return attribute(m.wanted, name, device); };
    *prop = {};
    std::snprintf(prop->name, sizeof prop->name, "stand-in device %d", device);
    prop->totalGlobalMem = m.wanted.device_memory;
    prop->sharedMemPerBlock = 48 << 10;
    prop->warpSize = ask(cudaDevAttrWarpSize);
    prop->maxThreadsPerBlock = ask(cudaDevAttrMaxThreadsPerBlock);
    prop->major = ask(cudaDevAttrComputeCapabilityMajor);
    prop->minor = ask(cudaDevAttrComputeCapabilityMinor);
    prop->multiProcessorCount = ask(cudaDevAttrMultiProcessorCount);
    prop->integrated = ask(cudaDevAttrIntegrated);
    prop->canMapHostMemory = ask(cudaDevAttrCanMapHostMemory);
    prop->concurrentKernels = ask(cudaDevAttrConcurrentKernels);
    prop->ECCEnabled = 1;
    prop->pciBusID = ask(cudaDevAttrPciBusId);
    prop->pciDeviceID = ask(cudaDevAttrPciDeviceId);
    prop->pciDomainID = ask(cudaDevAttrPciDomainId);
    prop->asyncEngineCount = ask(cudaDevAttrAsyncEngineCount);
    prop->unifiedAddressing = ask(cudaDevAttrUnifiedAddressing);
    prop->maxThreadsPerMultiProcessor
      = ask(cudaDevAttrMaxThreadsPerMultiProcessor);
    prop->streamPrioritiesSupported = ask(cudaDevAttrStreamPrioritiesSupported);
    prop->pageableMemoryAccess = ask(cudaDevAttrPageableMemoryAccess);
    prop->canUseHostPointerForRegisteredMem
      = ask(cudaDevAttrCanUseHostPointerForRegisteredMem);
    prop->hostRegisterSupported = ask(cudaDevAttrHostRegisterSupported);
#if CUDART_VERSION >= 13000
    prop->hostNumaId = ask(cudaDevAttrHostNumaId);
#endif
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* pciBusId, int len, int device) {
  return call("cudaDeviceGetPCIBusId", needs::nothing, [&](machine& m) {
    if (const auto code = check_device(m, device); code != cudaSuccess)
      return code;
    constexpr int length = sizeof "0000:00:00.0";
    if (pciBusId == nullptr || len < length)
      return m.refuse(cudaErrorInvalidValue, "no room for 13 characters");
    const auto bus = attribute(m.wanted, cudaDevAttrPciBusId, device);
    std::snprintf(pciBusId, static_cast<std::size_t>(len), "%04x:%02x:00.0", 0,
                  static_cast<unsigned>(bus) & 0xff);
    return cudaSuccess;
  });
}

namespace kvtide::stand_in {
namespace {

/// cuDevicePrimaryCtxGetState of the driver.
int primary_context_state(int device, unsigned int* flags, int* active) {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  *flags = 0;
  *active = m.contexts.count(device) > 0 ? 1 : 0;
  return 0;
}

} // namespace
} // namespace kvtide::stand_in

// CUDA Runtime API, driver entry point access: functions of the driver by name.
cudaError_t cudaGetDriverEntryPointByVersion(
  const char* symbol, void** funcPtr, unsigned int, unsigned long long,
  cudaDriverEntryPointQueryResult* driverStatus) {
  return call(
    "cudaGetDriverEntryPointByVersion", needs::nothing, [&](machine& m) {
      if (symbol == nullptr || funcPtr == nullptr)
        return m.refuse(cudaErrorInvalidValue, "no name, or nowhere to put it");
      const auto known = std::strcmp(symbol, "cuDevicePrimaryCtxGetState") == 0;
      *funcPtr
        = known ? reinterpret_cast<void*>(primary_context_state) : nullptr;
      if (driverStatus != nullptr)
        *driverStatus = known ? cudaDriverEntryPointSuccess
                              : cudaDriverEntryPointSymbolNotFound;
      return cudaSuccess;
    });
}
