// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "bench/copy/results.hpp"

#include <string>

namespace kvtide::bench {

/// Processor, cores and time.
[[nodiscard]] run_facts facts_of_machine();

/// Adds what the system says of a PCI device's link: what it is now (a device
/// that idles may have narrowed it) and what the device could do.
/// @param pci_bus_id as CUDA writes it, e.g. "0000:17:00.0"
/// @param root the folder of PCI devices, for tests
void add_link(run_facts& facts, const std::string& pci_bus_id,
              const std::string& root = "/sys/bus/pci/devices");

} // namespace kvtide::bench
