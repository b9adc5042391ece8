// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/cuda_options.hpp"
#include "kvtide/result.hpp"

#include "gpu/copy_engine.hpp"
#include "gpu/copy_fault.hpp"
#include "gpu/cuda/compute_events.hpp"
#include "gpu/cuda/pool_registration.hpp"
#include "gpu/host_pool_memory.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace kvtide::gpu {

/// What the owner of a copy engine has on one GPU besides the engine. Outlives
/// a registration: handles of compute that was enqueued before it must not name
/// events of later compute (G2). Copies are the same seat.
class cuda_seat {
public:
  /// Takes the GPU into use.
  /// @param pins who pins the host pool; null: pins of its own
  /// @returns `ec::unsupported` without such a GPU, or `ec::device_failure`
  [[nodiscard]] static result<cuda_seat>
  make(int device, std::shared_ptr<pool_registration> pins = nullptr);

  [[nodiscard]] int device() const noexcept {
    return device_;
  }

  /// The GPU in a few words, for the log.
  [[nodiscard]] const std::string& name() const noexcept {
    return name_;
  }

  /// Never null.
  [[nodiscard]] const std::shared_ptr<compute_events>& events() const noexcept {
    return events_;
  }

  /// A pool that this GPU copies by itself.
  [[nodiscard]] host_pool_config pool_config(const cuda_options& opts,
                                             std::uint64_t host_bytes) const;

  /// @param wake see `cuda_engine_config::wake`
  /// @param pool the one that `pool_config` led to; kept while a copy may touch
  ///             it
  /// @param fault see `cuda_engine_config::fault`
  [[nodiscard]] result<std::unique_ptr<copy_engine>>
  make_engine(const cuda_options& opts, wake_function wake,
              std::shared_ptr<host_pool_memory> pool,
              std::function<copy_fault(job_id, job_kind)> fault = {}) const;

private:
  cuda_seat() = default;

  int device_ = 0;
  std::string name_;
  std::optional<int> numa_node_;
  std::shared_ptr<compute_events> events_;
  std::shared_ptr<pool_registration> pins_;
};

} // namespace kvtide::gpu
