// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace kvtide {

/// Lets one thread at a time into an object, and counts those that it turns
/// away: a second thread inside would be a race, so it has to stay outside, and
/// its caller is told. One exchange per call; nobody waits.
///
/// Thread-safety: any thread may call anything.
class one_caller {
public:
  /// As long as it lives its thread is inside, if it came in.
  class entry {
  public:
    explicit entry(one_caller* inside) noexcept : inside_(inside) {
      // nop
    }

    entry(entry&& other) noexcept
      : inside_(std::exchange(other.inside_, nullptr)) {
      // nop
    }

    entry& operator=(entry&&) = delete;

    ~entry() {
      if (inside_ != nullptr)
        inside_->busy_.store(false, std::memory_order_release);
    }

    explicit operator bool() const noexcept {
      return inside_ != nullptr;
    }

  private:
    one_caller* inside_;
  };

  /// @returns false if somebody is inside
  [[nodiscard]] entry enter() noexcept {
    if (!busy_.exchange(true, std::memory_order_acquire))
      return entry{this};
    refused_.fetch_add(1, std::memory_order_relaxed);
    return entry{nullptr};
  }

  /// Threads that were turned away so far.
  [[nodiscard]] std::uint64_t refused() const noexcept {
    return refused_.load(std::memory_order_relaxed);
  }

private:
  std::atomic<bool> busy_{false};
  std::atomic<std::uint64_t> refused_{0};
};

} // namespace kvtide
