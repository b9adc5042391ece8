// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>

namespace kvtide::gpu {

/// What a log line and a table say of a GPU.
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

} // namespace kvtide::gpu
