// SPDX-License-Identifier: Apache-2.0

/// @file
/// The copy engine of a GPU.

#pragma once

#include "kvtide/copy_path.hpp"
#include "kvtide/result.hpp"

#include "gpu/copy_engine.hpp"
#include "gpu/copy_fault.hpp"
#include "gpu/cuda/compute_events.hpp"
#include "gpu/cuda/pool_registration.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace kvtide::gpu {

/// Configures the engine of one device.
struct cuda_engine_config {
  /// Required. Called by threads of the driver, too.
  wake_function wake;

  int device = 0;

  /// Required: what `copy_job::after_events` name.
  std::shared_ptr<compute_events> events;

  /// Where the device sees the host pool. Without it the pool is plain memory,
  /// and all copies go through a pinned buffer.
  std::shared_ptr<pool_registration> pool;

  copy_path path = copy_path::automatic;

  /// `automatic`: fragments of fewer bytes go by `kernel`. Without value:
  /// measured at start, see `calibration`.
  std::optional<std::uint64_t> kernel_below;

  /// Thread blocks of the kernel, at least 1; no more multiprocessors than that
  /// are taken from compute.
  std::uint32_t kernel_blocks = 12;

  /// Largest piece of work that is enqueued at once, in bytes (G3). Zero: what
  /// the link moves in 1.5 ms, as measured at start.
  std::uint64_t slice_bytes = 0;

  /// Bytes that may be enqueued per direction, flushes apart and beside the
  /// first slice of each stream (G3). Zero: two slices.
  std::uint64_t bytes_in_flight = 0;

  /// Streams per direction, at least 1. Jobs are dealt out in turn.
  std::uint32_t streams_per_direction = 1;

  /// Bytes of each stream's pinned buffer, at least 1; taken only without
  /// `pool`.
  std::uint64_t bounce_bytes = 16u << 20;

  fence_wait fences = fence_wait::stream;

  /// Where measurements are kept for the next start. Empty: nowhere.
  std::string calibration_file;

  /// The memory of the host pool. Kept for ever if copies are still under way
  /// when the engine ends, or might be (G7).
  std::shared_ptr<void> keep;

  /// How long the end of the engine waits for what is enqueued.
  std::chrono::milliseconds patience{10'000};

  /// Asked once per job, by `submit`, on the caller's thread. For tests.
  std::function<copy_fault(job_id, job_kind)> fault;
};

/// Copies in streams of its own. All order is that of streams and events, so
/// nothing of the host stands between a copy and the one behind it. Jobs wait
/// in queues here until there is room in flight (G3); those that a fence names,
/// and those before them, are enqueued at once.
///
/// Fences are of kind `none`, `event` (`fence::handle` is a `cudaEvent_t`) or
/// `host`. The event of a step is valid until `make_fence` of a later step: the
/// compute stream must have been told to wait for it by then (G2).
///
/// Its end waits for what is enqueued, and so for the compute that this waits
/// for, but no longer than `cuda_engine_config::patience`.
///
/// After an error that ends the CUDA context, every job fails with its text,
/// `lost` says so, and what the engine holds is leaked (G7).
/// @returns `ec::unsupported` without such a device or in a build without CUDA,
///          `ec::invalid_options`, `ec::out_of_memory`, `ec::device_failure`
[[nodiscard]] result<std::unique_ptr<copy_engine>>
make_cuda_copy_engine(cuda_engine_config config);

} // namespace kvtide::gpu
