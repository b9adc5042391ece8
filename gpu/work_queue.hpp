// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/error.hpp"

#include <cstdint>

namespace kvtide::gpu {

/// What a `compute_stream` owns: work of one device that runs in its order.
/// Its calls and their errors are those of `compute_stream`.
class work_queue {
public:
  work_queue() = default;

  work_queue(const work_queue&) = delete;

  work_queue& operator=(const work_queue&) = delete;

  virtual ~work_queue();

  [[nodiscard]] virtual error to_device(void* destination, const void* source,
                                        std::uint64_t bytes)
    = 0;

  [[nodiscard]] virtual error to_host(void* destination, const void* source,
                                      std::uint64_t bytes)
    = 0;

  /// @param event the handle of a fence of kind `event`
  [[nodiscard]] virtual error wait_for(std::uint64_t event) = 0;

  [[nodiscard]] virtual error synchronize() = 0;

  [[nodiscard]] virtual std::uint64_t handle() const noexcept = 0;
};

} // namespace kvtide::gpu
