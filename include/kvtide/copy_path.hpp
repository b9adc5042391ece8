// SPDX-License-Identifier: Apache-2.0

/// @file
/// How a CUDA device copies, and how compute waits for it.

#pragma once

#include <cstdint>

namespace kvtide {

/// How the bytes of a batch travel.
enum class copy_path : std::uint8_t {
  /// Small fragments by `kernel`, others by `batch` where the driver has it,
  /// else by `plain`.
  automatic,
  /// One `cudaMemcpyBatchAsync` for many fragments (G4).
  batch,
  /// One `cudaMemcpyAsync` per fragment.
  plain,
  /// A kernel that reads and writes host memory through the link.
  kernel,
};

/// What a step's compute waits with.
enum class fence_wait : std::uint8_t {
  /// An event for its stream.
  stream,
  /// The host: the step is reported once its copies have ended.
  host,
};

} // namespace kvtide
