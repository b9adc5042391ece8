// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "core/peer_address.hpp"

#include <string>
#include <sys/socket.h>
#include <vector>

namespace kvtide::net {

/// What the kernel takes for an address.
struct endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&address);
  }
};

/// Asks the system's resolver, which may take seconds for a name, and no time
/// for an address.
/// @param option names `where` in the sentence of an error
/// @returns at least one, or `ec::invalid_options`
[[nodiscard]] result<std::vector<endpoint>>
resolve(const core::peer_address& where, const std::string& option);

/// True for 127.0.0.0/8 and ::1, also if written as an IPv6 address.
[[nodiscard]] bool is_loopback(const endpoint& x);

[[nodiscard]] std::string to_string(const endpoint& x);

/// Who is at the other end of a socket, or this one.
[[nodiscard]] endpoint peer_of(int fd);
[[nodiscard]] endpoint self_of(int fd);

/// @returns zero if it has none
[[nodiscard]] std::uint16_t port_of(const endpoint& x);

} // namespace kvtide::net
