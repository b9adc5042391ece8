// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "gpu/cuda/status.hpp"

#include <utility>

namespace kvtide::gpu {

/// Owns one thing that CUDA gave out. Must be given back with the same device
/// current that it was made on (see `device_scope`). After a sticky error its
/// context is gone and giving back may do anything: `release` it then (G7).
template <class T, cudaError_t (*GiveBack)(T)>
class owner {
public:
  owner() = default;

  explicit owner(T handle) noexcept : handle_(handle) {
    // nop
  }

  owner(owner&& other) noexcept : handle_(other.release()) {
    // nop
  }

  owner& operator=(owner&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  ~owner() {
    if (handle_ != T{})
      ignore(GiveBack(handle_));
  }

  [[nodiscard]] T get() const noexcept {
    return handle_;
  }

  /// Leaks it.
  T release() noexcept {
    return std::exchange(handle_, T{});
  }

private:
  T handle_ = T{};
};

} // namespace kvtide::gpu
