// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a rank has on its GPU besides a copy engine.

#pragma once

#include "kvtide/kv_memory.hpp"
#include "kvtide/result.hpp"

#include "actors/compute_side.hpp"
#include "gpu/cuda/pool_registration.hpp"
#include "gpu/cuda_seat.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
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

/// The seat for memory that a rank registers. Whether the memory is that GPU's
/// is for `gpu::open_kv` to say.
/// @param before the one that the rank has, if any
/// @param shared set if the host pool is
/// @returns `before`, or a new one; `ec::invalid_argument` if no stream is
///          named (S6) or `before` is on another GPU; or as
///          `gpu::cuda_seat::make`
[[nodiscard]] result<gpu::cuda_seat>
seat_for(const kv_memory& memory, const std::optional<gpu::cuda_seat>& before,
         const std::shared_ptr<shared_pins>& shared);

/// @param streams those of the registered memory
[[nodiscard]] compute_calls calls_of(const gpu::cuda_seat& seat,
                                     const std::vector<std::uint64_t>& streams);

} // namespace kvtide
