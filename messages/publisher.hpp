// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a replica's publisher understands: from the cache manager of its
/// process what changes in the host pool, from the directory what became of
/// what it said.
///
/// Cache manager and publisher may live in actor systems of their own. So
/// neither monitors the other or answers a sender: they know addresses, and
/// send anonymously.

#pragma once

#include "core/change_log.hpp"
#include "messages/directory.hpp"
#include "messages/fwd.hpp"
#include "messages/join.hpp"
#include "messages/timer.hpp"

#include <caf/actor_addr.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <cstdint>
#include <vector>

namespace kvtide::msg {

/// A pool is there, or is another one now: forget what was said of it.
struct watch_pool {
  caf::actor_addr pool;
};

/// Chunks that came and went, in their order.
struct pool_changed {
  caf::actor_addr pool;
  std::vector<core::key_change> changes;
};

/// Answers `get_pool_part`: what was there when it was read. What changes
/// meanwhile comes before or behind it on the same path.
struct pool_part {
  caf::actor_addr pool;
  slot_id first = 0;
  /// The first slot behind them.
  slot_id next = 0;
  std::vector<std::uint64_t> digests;
  /// There are no slots behind these.
  bool last = false;
};

/// The pool is there no more.
struct pool_gone {
  caf::actor_addr pool;
};

} // namespace kvtide::msg

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::watch_pool)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::pool_changed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::pool_part)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::pool_gone)

namespace kvtide {

/// Tells a directory what one host pool has.
using publisher_actor = caf::typed_actor<
  caf::reacts_to<msg::watch_pool>, caf::reacts_to<msg::pool_changed>,
  caf::reacts_to<msg::pool_part>, caf::reacts_to<msg::pool_gone>,
  caf::reacts_to<msg::knock>, caf::reacts_to<msg::enrolled>,
  caf::reacts_to<msg::published>, caf::reacts_to<msg::timer>>;

/// What the cache manager knows of it.
using pool_watcher_port = caf::typed_actor<
  caf::reacts_to<msg::watch_pool>, caf::reacts_to<msg::pool_changed>,
  caf::reacts_to<msg::pool_part>, caf::reacts_to<msg::pool_gone>>;

} // namespace kvtide
