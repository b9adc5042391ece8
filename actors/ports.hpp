// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/answers.hpp"

#include "actors/event_queue.hpp"
#include "messages/engine.hpp"
#include "messages/rank_side.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>

namespace kvtide {

using engine_queue = event_queue<engine_event>;
using rank_queue = event_queue<rank_event>;

struct engine_port_state {
  static inline const char* name = "engine-port";
};

struct rank_port_state {
  static inline const char* name = "rank-port";
};

/// The engine's ear inside the actor system: puts what it hears into a queue.
engine_actor::behavior_type
engine_port(engine_actor::stateful_pointer<engine_port_state> self,
            std::shared_ptr<engine_queue> queue);

/// The rank side's ear inside the actor system.
rank_side_actor::behavior_type
rank_port(rank_side_actor::stateful_pointer<rank_port_state> self,
          std::shared_ptr<rank_queue> queue);

} // namespace kvtide
