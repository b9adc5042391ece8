// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace kvtide::net {

/// Says who was turned away: one line per connection, but no flood of them,
/// whatever the network sends. Any thread.
class refusal_log {
public:
  /// Lines that may come at once, and how fast new ones are allowed.
  static constexpr std::uint32_t burst = 16;
  static constexpr std::chrono::milliseconds refill{1'000};

  using clock = std::chrono::steady_clock;

  /// @param who an address
  /// @param why a sentence without a point
  void note(const std::string& who, const std::string& why,
            clock::time_point now = clock::now());

  /// How many were turned away so far.
  [[nodiscard]] std::uint64_t count() const;

private:
  [[nodiscard]] bool take(clock::time_point now);

  mutable std::mutex mutex_;
  std::uint64_t count_ = 0;
  std::uint64_t silent_ = 0;
  std::uint32_t left_ = burst;
  clock::time_point filled_{};
};

} // namespace kvtide::net
