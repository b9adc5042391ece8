// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace kvtide::test {

/// A socket of somebody who is no peer.
class intruder {
public:
  /// Connects to "host:port".
  explicit intruder(const std::string& address);

  intruder(intruder&& other) noexcept;
  intruder& operator=(intruder&& other) noexcept;
  ~intruder();

  /// @returns false if the other side takes no more
  bool send(std::string_view bytes) const;

  /// No more comes from this side.
  void end() const;

  /// Waits until the other side has closed the connection; drops what it sends.
  /// @returns false if it has not in time
  [[nodiscard]] bool closed(std::chrono::milliseconds within) const;

  [[nodiscard]] bool connected() const noexcept {
    return fd_ >= 0;
  }

private:
  int fd_ = -1;
};

/// What a TLS client would say first, for a change of which bytes go on.
[[nodiscard]] std::string client_hello();

/// A frame of CAF's protocol, without a payload.
[[nodiscard]] std::string frame(unsigned operation, unsigned payload_size);

} // namespace kvtide::test
