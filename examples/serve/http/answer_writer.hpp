// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace serve {

/// What a client is sent, in order: one write is under way, the rest waits
/// behind it. Both, and what this system's kernel has taken and cannot send as
/// the client's has no room for it, are what the client has not taken yet.
/// What the client's own kernel keeps for it counts as taken: nobody here can
/// tell.
///
/// Thread-safety: the thread of the sockets.
class answer_writer {
public:
  using clock = std::chrono::steady_clock;
  using callback = std::function<void(const boost::system::error_code&)>;

  /// @param socket must outlive this object; it becomes non-blocking
  /// @param patience until `deadline`, from when the client took something last
  answer_writer(boost::asio::ip::tcp::socket& socket,
                std::chrono::milliseconds patience)
    : socket_(socket), patience_(patience) {
    // nop
  }

  answer_writer(const answer_writer&) = delete;
  answer_writer& operator=(const answer_writer&) = delete;

  void add(std::string_view bytes) {
    unsent_ += bytes;
    added_ += bytes.size();
  }

  /// Writes some of what there is, unless a write is under way or there is
  /// nothing.
  /// @param on_written called from the socket's loop, never from within this
  ///        call, with what came of it; it keeps this object alive, and calls
  ///        `ended` first
  void start(callback on_written);

  /// The write that was under way has ended.
  void ended() noexcept {
    busy_ = false;
  }

  /// Asks the kernel what the client has taken meanwhile. Changes `untaken` and
  /// `deadline`.
  void look() noexcept;

  [[nodiscard]] bool busy() const noexcept {
    return busy_;
  }

  /// Bytes that the client had not taken at the last `look`.
  [[nodiscard]] std::size_t untaken() const noexcept {
    return static_cast<std::size_t>(added_ - taken_);
  }

  /// When the client has taken nothing for too long, as of the last `look`;
  /// `clock::time_point::max()` means that there is nothing to take.
  [[nodiscard]] clock::time_point deadline() const noexcept {
    return deadline_;
  }

private:
  boost::asio::ip::tcp::socket& socket_;
  std::chrono::milliseconds patience_;
  /// On its way, from `sent_` on; and what comes behind it.
  std::string sending_;
  std::size_t sent_ = 0;
  std::string unsent_;
  bool busy_ = false;
  /// Bytes since the connection began.
  std::uint64_t added_ = 0;
  std::uint64_t taken_ = 0;
  clock::time_point deadline_ = clock::time_point::max();
};

} // namespace serve
