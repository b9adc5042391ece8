// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kvtide::core {

/// Where a process of the deployment is reached.
struct peer_address {
  /// A name, or an IPv4 or IPv6 address without brackets.
  std::string host;
  std::uint16_t port = 0;
};

/// Reads "host:port", with an IPv6 address in brackets.
/// @param option names the text in the sentence of an error
/// @returns `ec::invalid_options` if it is something else
[[nodiscard]] result<peer_address> read_peer_address(std::string_view text,
                                                     const std::string& option);

/// Writes what `read_peer_address` reads.
[[nodiscard]] std::string to_string(const peer_address& x);

} // namespace kvtide::core
