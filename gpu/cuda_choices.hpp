// SPDX-License-Identifier: Apache-2.0

/// @file
/// What `cuda_options` say to the parts of a GPU's copies.

#pragma once

#include "kvtide/cuda_options.hpp"
#include "kvtide/error.hpp"

#include "gpu/cuda/cuda_copy_engine.hpp"
#include "gpu/cuda/pool_registration.hpp"
#include "gpu/host_pool_memory.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace kvtide::gpu {

/// @returns `ec::invalid_options` and what is wrong, or no error
[[nodiscard]] error fault_of(const cuda_options& opts);

/// The rest is as by default.
[[nodiscard]] cuda_engine_config engine_config_of(const cuda_options& opts);

/// @param numa_node that the GPU is attached to, where there are several
[[nodiscard]] host_pool_config
pool_config_of(const cuda_options& opts, std::uint64_t host_bytes,
               std::optional<int> numa_node,
               std::shared_ptr<pool_registration> pins);

} // namespace kvtide::gpu
