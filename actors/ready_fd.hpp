// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/options.hpp"
#include "kvtide/result.hpp"

#include <chrono>

namespace kvtide {

/// A file descriptor that is readable between `signal` and `clear`; fits epoll,
/// libuv, Asio and asyncio. Any thread may call anything.
class ready_fd {
public:
  /// @returns `ec::out_of_memory` if the process has no descriptor left.
  static result<ready_fd> create();

  ready_fd(ready_fd&& other) noexcept;
  ready_fd& operator=(ready_fd&& other) noexcept;
  ~ready_fd();

  [[nodiscard]] int get() const noexcept {
    return fd_;
  }

  void signal() const noexcept;
  /// @returns the number of signals since the last one
  std::uint64_t clear() const noexcept;

  /// Blocks until the descriptor is readable, at most `longest_wait`.
  /// @returns false if `timeout` passed first
  [[nodiscard]] bool wait(std::chrono::milliseconds timeout) const noexcept;

private:
  explicit ready_fd(int fd) noexcept : fd_(fd) {
    // nop
  }

  int fd_ = -1;
};

} // namespace kvtide
