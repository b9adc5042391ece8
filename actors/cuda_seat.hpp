// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/cuda_options.hpp"
#include "kvtide/kv_memory.hpp"
#include "kvtide/result.hpp"

#include "actors/compute_side.hpp"
#include "gpu/copy_engine.hpp"
#include "gpu/cuda/compute_events.hpp"
#include "gpu/cuda/cuda_copy_engine.hpp"
#include "gpu/cuda/pool_registration.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kvtide {

/// @returns `ec::invalid_options` and what is wrong, or no error
[[nodiscard]] error fault_of(const cuda_options& opts);

/// What `opts` say to the copy engine; the rest is as by default.
[[nodiscard]] gpu::cuda_engine_config
engine_config_of(const cuda_options& opts);

/// What a device has on one GPU besides the engine, from its first registration
/// on. Compute events outlive a registration: handles of a step that was
/// computed before it must not name events of later ones (G2). Touched by the
/// device alone.
class cuda_seat {
public:
  /// Checks the memory against the GPU (G6), and takes the GPU into use.
  /// @returns `ec::unsupported` without such a GPU, `ec::invalid_argument` if
  ///          the memory is elsewhere or this seat is on another GPU, or
  ///          `ec::device_failure`
  [[nodiscard]] error open(const kv_memory& memory);

  /// @pre `open` has succeeded
  /// @param wake see `gpu::cuda_engine_config::wake`
  [[nodiscard]] result<std::unique_ptr<gpu::copy_engine>>
  make_engine(const cuda_options& opts, gpu::wake_function wake) const;

  /// @pre `open` has succeeded
  /// @param streams those of the registered memory
  [[nodiscard]] compute_calls
  calls(const std::vector<std::uint64_t>& streams) const;

  /// The GPU in a few words, for the log. Empty before `open`.
  [[nodiscard]] const std::string& name() const noexcept {
    return name_;
  }

  /// Leaks what the GPU gave out: its context is gone (G7).
  void abandon();

private:
  int device_ = 0;
  std::string name_;
  std::shared_ptr<gpu::compute_events> events_;
};

} // namespace kvtide
