// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "gpu/cuda/devices.hpp"

#include <compare>
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

  friend auto operator<=>(const calibration_key&, const calibration_key&)
    = default;
};

/// Takes the place of a measurement: the slower side of what links do today.
inline constexpr copy_rates estimated_rates{32u << 10, 20'000'000'000};

/// Forgets what this process has measured; for tests.
void forget_rates();

/// @returns nothing if the file does not say so, whatever is wrong with it
[[nodiscard]] std::optional<copy_rates>
read_calibration(const std::string& file, const calibration_key& key);

/// Adds a line to the file, or replaces the one with this key. Readers see the
/// old file or the new one. A file or a folder that is not there is made.
/// @returns `ec::invalid_argument` with what the system says, or if the file is
///          none that this function has written
[[nodiscard]] error write_calibration(const std::string& file,
                                      const calibration_key& key,
                                      const copy_rates& rates);

/// Rates, and a sentence if they could not be kept.
struct known_copy_rates {
  copy_rates rates;
  std::string note;
};

/// What is known of a device: from an earlier call in this process, from the
/// file, or measured now and kept in both. Where there is no memory left to
/// measure with, an estimate, which is kept nowhere.
/// @param file may be empty
/// @pre the device is current
/// @returns the errors of `facts_of` and `measure_copies`, `ec::out_of_memory`
///          apart
[[nodiscard]] result<known_copy_rates>
rates_of(int device, std::uint32_t kernel_blocks, const std::string& file);

} // namespace kvtide::gpu
