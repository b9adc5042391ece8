// SPDX-License-Identifier: Apache-2.0

/// @file
/// Whose end a port tells of. The ports stay when what they watch is gone, so
/// nobody outside the actor system waits for an answer that cannot come.

#pragma once

#include "messages/engine.hpp"
#include "messages/fwd.hpp"
#include "messages/rank_side.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

namespace kvtide::msg {

struct watch_scheduler {
  caf::strong_actor_ptr scheduler;
};

/// Replaces those that were watched before.
struct watch_rank {
  caf::strong_actor_ptr worker;
  caf::strong_actor_ptr device;
};

} // namespace kvtide::msg

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::watch_scheduler)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::watch_rank)

namespace kvtide {

using engine_port_actor
  = engine_actor::extend<caf::reacts_to<msg::watch_scheduler>>;

using rank_port_actor
  = rank_side_actor::extend<caf::reacts_to<msg::watch_rank>>;

} // namespace kvtide
