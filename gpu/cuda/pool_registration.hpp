// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/error.hpp"
#include "kvtide/result.hpp"

#include "gpu/memory_registrar.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kvtide::gpu {

/// Pins pieces of a host pool for all devices of this process (G5), and says
/// where a device sees them.
class pool_registration final : public memory_registrar {
public:
  /// @returns `ec::unsupported` without such a device or in a build without
  ///          CUDA
  [[nodiscard]] static result<std::shared_ptr<pool_registration>>
  make(int device);

  ~pool_registration() override;

  [[nodiscard]] error add(std::byte* first, std::uint64_t bytes) override;

  void remove(std::byte* first) noexcept override;

  /// Where the device sees `[first, first + bytes)`, or null if that does not
  /// lie in one piece.
  [[nodiscard]] std::byte* device_address(const void* first,
                                          std::uint64_t bytes) const;

  /// What is registered stays so for ever: a context is gone (G7). Devices that
  /// are not still copy.
  void abandon();

private:
  struct impl;
  explicit pool_registration(std::unique_ptr<impl> ptr) noexcept;
  std::unique_ptr<impl> impl_;
};

} // namespace kvtide::gpu
