// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <caf/io/network/native_socket.hpp>
#include <caf/io/network/rw_state.hpp>
#include <caf/openssl/session.hpp>

#include <cstddef>
#include <string>

namespace kvtide::net {

/// Bytes of one connection, through TLS if there is a session. What CAF's
/// streams take as a policy.
class wire {
public:
  using rw_state = caf::io::network::rw_state;
  using native_socket = caf::io::network::native_socket;

  /// @param session null: without TLS; else its handshake is over
  explicit wire(caf::openssl::session_ptr session);

  rw_state read_some(std::size_t& count, native_socket fd, void* buf,
                     std::size_t size);

  rw_state write_some(std::size_t& count, native_socket fd, const void* buf,
                      std::size_t size);

  bool must_read_more(native_socket fd, std::size_t threshold);

  /// Why it failed; empty if it did not, or the peer closed it.
  [[nodiscard]] const std::string& why() const noexcept {
    return why_;
  }

  /// What the last `write_some` took.
  [[nodiscard]] std::size_t written() const noexcept {
    return written_;
  }

private:
  rw_state judge(rw_state state);

  caf::openssl::session_ptr session_;
  std::string why_;
  std::size_t written_ = 0;
};

} // namespace kvtide::net
