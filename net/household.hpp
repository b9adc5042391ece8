// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "net/refusal_log.hpp"

#include <caf/node_id.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>

namespace kvtide::net {

class connection;

/// The largest message that is taken, and how much may wait for a peer that
/// does not read: a multiple of what the largest message of this library needs.
inline constexpr std::size_t longest_frame = std::size_t{64} << 20;
inline constexpr std::size_t longest_backlog = std::size_t{256} << 20;

/// Connections that may be open at once; ranks are 64 at most.
inline constexpr std::size_t most_connections = 512;

/// Of those, how many may not have proven yet who they are. The oldest has to
/// go for a new one, so that silent peers cannot keep others out.
inline constexpr std::size_t most_unproven = 64;

/// What all connections of one network share.
struct household {
  /// See `network_options`.
  std::chrono::milliseconds detection{2'000};

  /// Bytes that may wait for a peer that does not read.
  std::size_t backlog = longest_backlog;

  /// Sockets that are open. Any thread.
  std::atomic<std::size_t> connections{0};

  refusal_log refusals;

  /// Handles are never used twice: what CAF still has to say about an old
  /// connection must not hit a new one that got its file descriptor.
  std::atomic<std::int64_t> next_handle{std::int64_t{1} << 32};

  /// Who is behind which connection that was accepted. For the thread of CAF's
  /// multiplexer alone.
  std::map<caf::node_id, connection*> nodes;
};

} // namespace kvtide::net
