// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "gpu/copy_engine.hpp"
#include "gpu/named_pool.hpp"

#include <cstdint>
#include <memory>

namespace kvtide::gpu {

/// How stores into a named pool are noted.
struct named_engine_config {
  /// Required. Its slots are mapped until the engine is gone.
  std::shared_ptr<named_pool> pool;

  /// Required: as the engine's own.
  wake_function wake;

  /// That make digests; zero makes them in `poll`, so that a virtual clock
  /// alone decides what it reports.
  std::uint32_t threads = 2;
};

/// Makes its copies by another engine. `copy_job::contents` of a store are
/// noted as being written before it starts, and as valid, with the digest of
/// their bytes, before it is reported. Until then it is in flight, and fences
/// without an event wait for it; a fence that is an event does not. A store
/// that fails leaves its slots without content.
/// @returns `ec::out_of_memory` if the system refuses a thread.
[[nodiscard]] result<std::unique_ptr<copy_engine>>
make_named_pool_engine(std::unique_ptr<copy_engine> inner,
                       named_engine_config config);

} // namespace kvtide::gpu
