// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/error.hpp"

#include <cstddef>
#include <cstdint>

namespace kvtide::gpu {

/// Makes host memory known to a driver, which pins it. Called by one thread at
/// a time, of those that open a pool or give it up; an implementation sets the
/// current device itself (G6).
class memory_registrar {
public:
  memory_registrar() = default;

  memory_registrar(const memory_registrar&) = delete;

  memory_registrar& operator=(const memory_registrar&) = delete;

  virtual ~memory_registrar() = default;

  /// Registers one piece, for all devices of this process.
  /// @param first starts on a page.
  /// @returns no error, or what the driver said; the call then had no effect,
  ///          and nothing of it shows in a later call (MEM-01).
  [[nodiscard]] virtual error add(std::byte* first, std::uint64_t bytes) = 0;

  /// Takes back what `add` did. After the loss of a context there may be
  /// nothing to take back (G7).
  /// @pre `first` was added, and no copy touches the piece any more.
  virtual void remove(std::byte* first) noexcept = 0;
};

} // namespace kvtide::gpu
