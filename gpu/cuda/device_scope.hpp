// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "gpu/cuda/status.hpp"

namespace kvtide::gpu {

/// Makes a device current for this thread, and its calls harmless to a capture
/// that another thread has begun, for as long as it lives (G6). Handlers run on
/// whatever thread the scheduler gives them, and the rank side on the engine's
/// own: so it is set in every call, and put back where the device that was
/// current is in use.
class device_scope {
public:
  explicit device_scope(int device) noexcept;

  device_scope(const device_scope&) = delete;

  device_scope& operator=(const device_scope&) = delete;

  ~device_scope();

private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  int before_ = -1;
  bool changed_ = false;
};

} // namespace kvtide::gpu
