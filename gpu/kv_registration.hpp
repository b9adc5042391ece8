// SPDX-License-Identifier: Apache-2.0

/// @file
/// From what a rank says about its memory to copies: the part that everybody
/// who owns a copy engine shares.

#pragma once

#include "kvtide/job.hpp"
#include "kvtide/kv_memory.hpp"
#include "kvtide/result.hpp"

#include "gpu/copy_engine.hpp"
#include "gpu/geometry.hpp"
#include "gpu/host_pool_memory.hpp"

#include <cstdint>

namespace kvtide::gpu {

/// What was configured before a rank says anything.
struct registration_config {
  /// At least 1.
  std::uint32_t groups = 1;
  /// At least 1.
  std::uint32_t blocks_per_chunk = 1;
  host_pool_config pool;
  /// What the engine can copy. With `any`, tensors and streams are those of
  /// `kv_memory::device`.
  memory_domain domain = memory_domain::host_only;
};

/// Memory that is registered, and the host pool that belongs to it. Immutable.
struct kv_registration {
  gpu::geometry geometry;
  slot_pool pool;
};

/// Checks everything that a rank says about its memory, and finds or maps the
/// pool. Blocks as long as that takes.
/// @returns the errors of `make_geometry`, `check_on_device` and
///          `host_pool_memory::open`
[[nodiscard]] result<kv_registration> open_kv(const kv_memory& memory,
                                              const registration_config& config,
                                              host_pool_memory& pool);

/// Turns a job into copies; `after` and `after_events` stay empty.
/// @returns `ec::invalid_argument` if the job is of no kind, or with a sentence
///          that names the row that does not fit the registered memory or the
///          pool (GEO-04)
[[nodiscard]] result<copy_job> make_copies(const job& what,
                                           const kv_registration& where);

} // namespace kvtide::gpu
