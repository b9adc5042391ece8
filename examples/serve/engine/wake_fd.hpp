// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

namespace serve {

/// A file descriptor that is readable after `set` and until `clear`.
class wake_fd {
public:
  /// @returns `ec::out_of_memory` if the system has none left.
  static kvtide::result<wake_fd> make();

  wake_fd(wake_fd&& other) noexcept;
  wake_fd& operator=(wake_fd&&) = delete;
  ~wake_fd();

  [[nodiscard]] int get() const noexcept {
    return fd_;
  }

  /// Any thread.
  void set() const noexcept;
  void clear() const noexcept;

private:
  explicit wake_fd(int fd) noexcept : fd_(fd) {
    // nop
  }

  int fd_;
};

} // namespace serve
