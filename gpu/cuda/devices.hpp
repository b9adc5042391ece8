// SPDX-License-Identifier: Apache-2.0

/// @file
/// What there is to be known of the GPUs before anything is made on one.

#pragma once

#include "kvtide/error.hpp"
#include "kvtide/kv_memory.hpp"
#include "kvtide/result.hpp"

#include <cstddef>
#include <optional>
#include <string>

namespace kvtide::gpu {

/// Number of devices, at least 1. Whatever keeps the driver from saying so
/// means that there is no GPU here.
/// @returns `ec::unsupported` with a sentence that says why there is none
[[nodiscard]] result<int> count_devices();

/// What a log line and a table say of a device.
struct device_facts {
  std::string name;
  /// E.g. "0000:17:00.0".
  std::string pci_bus_id;
  /// As CUDA counts them, e.g. 13000 for 13.0.
  int driver_version = 0;
  int runtime_version = 0;
  int multiprocessors = 0;
  /// The host's NUMA node that it is attached to, where there are several.
  std::optional<int> numa_node;
};

[[nodiscard]] result<device_facts> facts_of(int device);

/// @returns no error if there is a device of that number
[[nodiscard]] error check_device(int device);

/// Checks what a rank registers, beyond what `make_geometry` can: that every
/// tensor lies on its device, and that every stream is one of it (G6).
[[nodiscard]] error check_on_device(const kv_memory& memory);

} // namespace kvtide::gpu
