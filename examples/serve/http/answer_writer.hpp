// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace serve {

/// What a client is sent, in order: one write is under way, the rest waits
/// behind it, and together they are what the client has not taken yet.
///
/// Thread-safety: the thread of the sockets.
class answer_writer {
public:
  using clock = std::chrono::steady_clock;
  using callback
    = std::function<void(const boost::system::error_code&, std::size_t)>;

  /// @param socket must outlive this object
  explicit answer_writer(boost::asio::ip::tcp::socket& socket)
    : socket_(socket) {
    // nop
  }

  answer_writer(const answer_writer&) = delete;
  answer_writer& operator=(const answer_writer&) = delete;

  void add(std::string_view bytes) {
    unsent_ += bytes;
  }

  /// Writes some of what there is, unless a write is under way or there is
  /// nothing.
  /// @param timeout until `deadline`
  /// @param on_written called from the socket's loop with what came of it; it
  ///        keeps this object alive, and calls `ended` first
  /// @returns whether a write was started
  bool start(std::chrono::milliseconds timeout, callback on_written);

  /// The write that was under way has sent `bytes` bytes.
  void ended(std::size_t bytes) noexcept;

  [[nodiscard]] bool busy() const noexcept {
    return busy_;
  }

  /// Bytes that the socket has not taken.
  [[nodiscard]] std::size_t unsent() const noexcept {
    return sending_.size() - sent_ + unsent_.size();
  }

  /// When the write that is under way has taken too long;
  /// `clock::time_point::max()` means that there is none.
  [[nodiscard]] clock::time_point deadline() const noexcept {
    return deadline_;
  }

private:
  boost::asio::ip::tcp::socket& socket_;
  /// On its way, from `sent_` on; and what comes behind it.
  std::string sending_;
  std::size_t sent_ = 0;
  std::string unsent_;
  bool busy_ = false;
  clock::time_point deadline_ = clock::time_point::max();
};

} // namespace serve
