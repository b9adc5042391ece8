// SPDX-License-Identifier: Apache-2.0

/// @file
/// What there is to be known of the GPUs before anything is made on one.

#pragma once

#include "kvtide/device_facts.hpp"
#include "kvtide/error.hpp"
#include "kvtide/kv_memory.hpp"
#include "kvtide/result.hpp"

namespace kvtide::gpu {

/// Number of devices, at least 1. Whatever keeps the driver from saying so
/// means that there is no GPU here.
/// @returns `ec::unsupported` with a sentence that says why there is none
[[nodiscard]] result<int> count_devices();

[[nodiscard]] result<device_facts> facts_of(int device);

/// @returns no error if there is a device of that number
[[nodiscard]] error check_device(int device);

/// Checks what a rank registers, beyond what `make_geometry` can: that every
/// tensor lies on its device, and that every stream is one of it (G6).
[[nodiscard]] error check_on_device(const kv_memory& memory);

} // namespace kvtide::gpu
