// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "bench/copy/batch.hpp"
#include "gpu/cuda/device_buffer.hpp"
#include "gpu/cuda/pool_registration.hpp"
#include "gpu/host_memory.hpp"

#include <cstdint>
#include <memory>

namespace kvtide::bench {

/// Device memory and pinned host memory for batches of one direction.
class cuda_memory {
public:
  /// Takes twice `bytes` of the current device, and `bytes` of the host, pinned
  /// through `pool`.
  [[nodiscard]] error take(std::shared_ptr<gpu::pool_registration> pool,
                           std::uint64_t bytes);

  cuda_memory() = default;

  cuda_memory(const cuda_memory&) = delete;

  cuda_memory& operator=(const cuda_memory&) = delete;

  ~cuda_memory();

  [[nodiscard]] both_sides sides() const {
    return {static_cast<std::byte*>(blocks_.get()), slots_.data()};
  }

private:
  gpu::device_buffer blocks_;
  gpu::host_memory slots_;
  /// Empty until the slots are pinned.
  std::shared_ptr<gpu::pool_registration> pool_;
};

} // namespace kvtide::bench
