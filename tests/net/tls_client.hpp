// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/network.hpp"

#include <string>

namespace kvtide::test {

/// How a TLS client fared.
struct tls_outcome {
  /// The other side said something after the handshake.
  bool let_in = false;
  /// E.g. "TLSv1.3"; empty without a handshake.
  std::string version;
  /// It asked whether the handshake may be had again, and got it.
  bool renegotiated = false;
};

/// Connects to `address` with OpenSSL alone.
/// @param who its certificate and key, if it has some
/// @param newest the newest version of TLS that it speaks, e.g. TLS1_2_VERSION;
///               zero for all
[[nodiscard]] tls_outcome try_tls(const std::string& address,
                                  const network_options& who, int newest = 0,
                                  bool renegotiate = false);

} // namespace kvtide::test
