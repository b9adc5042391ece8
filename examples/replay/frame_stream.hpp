// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::replay {

/// Owns a file descriptor.
class unique_fd {
public:
  explicit unique_fd(int fd = -1) noexcept : fd_(fd) {
    // nop
  }

  unique_fd(unique_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {
    // nop
  }

  unique_fd& operator=(unique_fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  ~unique_fd();

  [[nodiscard]] int get() const noexcept {
    return fd_;
  }

private:
  int fd_;
};

/// A stream ended, its peer does not read, or what it says is no message. The
/// text says which.
class stream_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Messages over a stream socket: four bytes with the length of what follows,
/// the lowest first, then a JSON value as CBOR (RFC 8949). One thread at a
/// time.
class frame_stream {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Longer messages are refused before room is made for them.
  static constexpr std::uint32_t longest_frame = 64u << 20;

  /// @param socket Of a stream; becomes non-blocking.
  explicit frame_stream(unique_fd socket);

  [[nodiscard]] int fd() const noexcept {
    return socket_.get();
  }

  /// Blocks while the peer does not read, until `deadline` at most.
  void send(const nlohmann::json& message, time_point deadline);

  /// Blocks until a message is there.
  /// @returns nothing if `deadline` passed first
  [[nodiscard]] std::optional<nlohmann::json> receive(time_point deadline);

  /// The peer has closed its end, whatever of it was not read yet.
  [[nodiscard]] bool is_closed() const noexcept;

private:
  [[nodiscard]] std::optional<nlohmann::json> take_frame();

  unique_fd socket_;
  std::vector<std::uint8_t> in_;
  std::vector<std::uint8_t> out_;
};

/// Listens on a Unix socket at `path`; one that nobody listens on any more is
/// replaced. Throws `stream_error`.
[[nodiscard]] unique_fd listen_at(const std::string& path);

/// Connects without waiting, also where nobody accepts yet.
/// @returns nothing if nobody listens there, or too many wait.
[[nodiscard]] std::optional<unique_fd> connect_to(const std::string& path);

} // namespace kvtide::replay
