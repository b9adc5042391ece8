// SPDX-License-Identifier: Apache-2.0

/// @file
/// How ranks of other processes are reached: component `net`, kvtide::net. Who
/// keeps all ranks in one process needs none of it and links no socket.

#pragma once

#include "kvtide/result.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace kvtide {

/// One end of the network: a port, its certificate, and whom it trusts.
class network;

/// Addresses are "host:port", with an IPv6 address in brackets. Loopback is
/// 127.0.0.0/8 and ::1.
struct network_options {
  /// Where peers dial in. Empty: nobody does. Port 0 takes a free one, see
  /// `address_of`.
  std::string listen;

  /// PEM files of this end's certificate and its key, and of the certificates
  /// (or their authorities) that peers must show. Either all three or none.
  /// With them every connection is TLS with certificates on both sides.
  std::string certificate;
  std::string private_key;
  std::string trusted;

  /// Without certificates, an address that is not loopback is refused unless
  /// this is set: then everybody who reaches the port can read and write the
  /// cache's plans.
  bool insecure = false;

  /// A peer that is silent for so long is gone, 100 ms to 1 h. The same on both
  /// sides.
  std::chrono::milliseconds detection{2'000};
};

/// Checks all of it, the files included; opens nothing yet. One network serves
/// one `runtime` or one `worker`.
/// @returns `ec::invalid_options` with a sentence that names the option and, of
///          a file, what is wrong with it.
[[nodiscard]] result<std::shared_ptr<network>>
make_network(const network_options& opts);

/// Where peers dial in, with the port that was taken; empty before the runtime
/// or worker has started, or if nobody can.
[[nodiscard]] std::string address_of(const network& net);

} // namespace kvtide
