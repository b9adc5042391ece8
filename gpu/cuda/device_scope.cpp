// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/device_scope.hpp"

namespace kvtide::gpu {

namespace {

/// `cuDevicePrimaryCtxGetState` of the driver: the one question about a context
/// whose answer makes none.
using state_query = int (*)(int device, unsigned int* flags, int* active);

state_query find_state_query() {
  void* found = nullptr;
  auto how = cudaDriverEntryPointSymbolNotFound;
  const auto status = ::cudaGetDriverEntryPointByVersion(
    "cuDevicePrimaryCtxGetState", &found, 7000, cudaEnableDefault, &how);
  ignore(status);
  return status == cudaSuccess && how == cudaDriverEntryPointSuccess
         ? reinterpret_cast<state_query>(found)
         : nullptr;
}

/// A device's number is the runtime's, which is the driver's.
bool has_context(int device) {
  static const auto ask = find_state_query();
  auto flags = 0u;
  auto active = 0;
  return ask != nullptr && ask(device, &flags, &active) == 0 && active != 0;
}

} // namespace

device_scope::device_scope(int device) noexcept {
  // In this order: setting a device may make its context.
  ignore(::cudaThreadExchangeStreamCaptureMode(&mode_));
  ignore(::cudaGetDevice(&before_));
  if (before_ != device)
    ignore(::cudaSetDevice(device));
  changed_ = before_ != device;
}

device_scope::~device_scope() {
  // A thread that never used CUDA has device 0 as well, and setting that would
  // make a context there: hundreds of megabytes on somebody else's GPU.
  if (changed_ && before_ >= 0 && has_context(before_))
    ignore(::cudaSetDevice(before_));
  ignore(::cudaThreadExchangeStreamCaptureMode(&mode_));
}

} // namespace kvtide::gpu
