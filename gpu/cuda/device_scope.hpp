// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "gpu/cuda/status.hpp"

namespace kvtide::gpu {

/// Makes a device current for this thread, and its calls harmless to a capture
/// that another thread has begun, for as long as it lives (G6). Handlers run on
/// whatever thread the scheduler gives them, and the rank side on the engine's
/// own: so it is set in every call, and put back.
class device_scope {
public:
  explicit device_scope(int device) noexcept {
    // In this order: setting a device may make its context.
    ignore(::cudaThreadExchangeStreamCaptureMode(&mode_));
    ignore(::cudaGetDevice(&before_));
    if (before_ != device)
      ignore(::cudaSetDevice(device));
    changed_ = before_ != device;
  }

  device_scope(const device_scope&) = delete;

  device_scope& operator=(const device_scope&) = delete;

  ~device_scope() {
    if (changed_ && before_ >= 0)
      ignore(::cudaSetDevice(before_));
    ignore(::cudaThreadExchangeStreamCaptureMode(&mode_));
  }

private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  int before_ = -1;
  bool changed_ = false;
};

} // namespace kvtide::gpu
