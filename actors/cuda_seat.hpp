// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/cuda_options.hpp"
#include "kvtide/kv_memory.hpp"
#include "kvtide/result.hpp"

#include "actors/compute_side.hpp"
#include "gpu/copy_engine.hpp"
#include "gpu/cuda/compute_events.hpp"
#include "gpu/cuda/pool_registration.hpp"
#include "gpu/host_pool_memory.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kvtide {

/// Who pins a host pool that ranks of one process share: the first one that
/// registers, for the GPUs of all. Any thread.
class shared_pins {
public:
  /// @returns as `gpu::pool_registration::make`
  [[nodiscard]] result<std::shared_ptr<gpu::pool_registration>> get(int device);

private:
  std::mutex mutex_;
  std::shared_ptr<gpu::pool_registration> made_;
};

/// What a device has on one GPU besides the engine, from its first registration
/// on. Compute events outlive a registration: handles of a step that was
/// computed before it must not name events of later ones (G2). Touched by the
/// device alone.
class cuda_seat {
public:
  /// Checks the memory against the GPU (G6), and takes the GPU into use.
  /// @param shared set if the host pool is
  /// @returns `ec::unsupported` without such a GPU, `ec::invalid_argument` if
  ///          the memory is elsewhere or this seat is on another GPU, or
  ///          `ec::device_failure`
  [[nodiscard]] error open(const kv_memory& memory,
                           const std::shared_ptr<shared_pins>& shared);

  /// A pool that this GPU copies by itself.
  /// @pre `open` has succeeded
  [[nodiscard]] gpu::host_pool_config
  pool_config(const cuda_options& opts, std::uint64_t host_bytes) const;

  /// @pre `open` has succeeded
  /// @param wake see `gpu::cuda_engine_config::wake`
  /// @param pool the one that `pool_config` led to; kept while a copy may touch
  ///             it
  [[nodiscard]] result<std::unique_ptr<gpu::copy_engine>>
  make_engine(const cuda_options& opts, gpu::wake_function wake,
              std::shared_ptr<gpu::host_pool_memory> pool) const;

  /// @pre `open` has succeeded
  /// @param streams those of the registered memory
  [[nodiscard]] compute_calls
  calls(const std::vector<std::uint64_t>& streams) const;

  /// The GPU in a few words, for the log. Empty before `open`.
  [[nodiscard]] const std::string& name() const noexcept {
    return name_;
  }

  /// Leaks what the GPU gave out: its context is gone (G7). A shared pool stays
  /// pinned for the other ranks.
  void abandon();

private:
  int device_ = 0;
  std::string name_;
  std::optional<int> numa_node_;
  std::shared_ptr<gpu::compute_events> events_;
  std::shared_ptr<gpu::pool_registration> pins_;
  bool shares_pins_ = false;
};

} // namespace kvtide
