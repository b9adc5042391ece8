// SPDX-License-Identifier: Apache-2.0

/// @file
/// What can be chosen about copies of a GPU. The defaults are meant to be kept
/// until a measurement says otherwise.

#pragma once

#include "kvtide/copy_path.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace kvtide {

/// Whether a host pool lies in pages that the machine's administrator has set
/// aside.
enum class huge_page_use : std::uint8_t {
  off,
  /// Ordinary pages, and a note, if there are too few.
  if_available,
  /// Registration fails if there are too few.
  required,
};

/// Options of `device_kind::cuda`, the same for all ranks.
struct cuda_options {
  copy_path path = copy_path::automatic;

  /// With `copy_path::automatic`: fragments of fewer bytes go by `kernel`.
  /// Without value: measured at the first registration.
  std::optional<std::uint64_t> kernel_below;

  /// Thread blocks of the kernel, 1 to 1,024: each stream that copies takes no
  /// more multiprocessors than that from compute. There are
  /// `streams_per_direction` of them in each direction, and one more for what
  /// compute waits for.
  std::uint32_t kernel_blocks = 12;

  /// Streams per direction, 1 to 16.
  std::uint32_t streams_per_direction = 1;

  /// Largest piece of work that is enqueued at once, in bytes; copies of the
  /// engine's own get between two pieces (G3). At least 4,096, or zero: what
  /// the link moves in 1.5 ms, as measured.
  std::uint64_t slice_bytes = 0;

  /// Bytes that may be enqueued per direction, apart from what a step waits
  /// for; not below `slice_bytes`. Zero: two pieces.
  std::uint64_t bytes_in_flight = 0;

  fence_wait fences = fence_wait::stream;

  huge_page_use huge_pages = huge_page_use::off;

  /// Take the host pool from the NUMA node that the GPU is attached to, where
  /// there are several. The pool of a rank that shares it is taken from the
  /// node of whichever rank registers first.
  bool numa_binding = true;

  /// Threads that touch the pool's pages at registration, at most 256. Zero:
  /// one per core, at most 8.
  std::uint32_t prefault_threads = 0;

  /// Go on with a pool that the driver does not pin, which is slow, instead of
  /// refusing the registration.
  bool allow_pageable = false;

  /// File that keeps what was measured for the next start; made, with its
  /// folder, if it is not there. Empty: measured at each start, some tenths of
  /// a second. A note of the registration says if it cannot be kept.
  std::string calibration_file;
};

} // namespace kvtide
