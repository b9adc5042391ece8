// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "gpu/cuda/devices.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace kvtide::gpu {

/// What a device and its link were measured to do.
struct copy_rates {
  /// The kernel is the faster path for fragments of fewer bytes.
  std::uint64_t kernel_below = 0;
  /// Of one large copy, in the slower direction.
  std::uint64_t bytes_per_second = 0;
};

/// Measures for a fraction of a second, with 64 MiB of device memory and as
/// much of pinned host memory.
/// @param kernel_blocks see `cuda_engine_config`
/// @pre the device is current
[[nodiscard]] result<copy_rates> measure_copies(std::uint32_t kernel_blocks);

/// What a rate depends on.
struct calibration_key {
  std::string device_name;
  int driver_version = 0;
  int runtime_version = 0;
  std::uint32_t kernel_blocks = 0;
};

/// @returns nothing if the file does not say so, whatever is wrong with it
[[nodiscard]] std::optional<copy_rates>
read_calibration(const std::string& file, const calibration_key& key);

/// Adds a line to the file, or replaces the one with this key. Readers see the
/// old file or the new one.
/// @returns `ec::invalid_argument` with what the system says
[[nodiscard]] error write_calibration(const std::string& file,
                                      const calibration_key& key,
                                      const copy_rates& rates);

/// Where calibrations are kept unless told otherwise: in kvtide's folder of
/// `$XDG_CACHE_HOME` or `$HOME/.cache`. Empty if neither is set.
[[nodiscard]] std::string usual_calibration_file();

} // namespace kvtide::gpu
