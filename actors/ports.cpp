// SPDX-License-Identifier: Apache-2.0

#include "actors/ports.hpp"

#include <utility>

namespace kvtide {

engine_actor::behavior_type
engine_port(engine_actor::stateful_pointer<engine_port_state>,
            std::shared_ptr<engine_queue> queue) {
  return {
    [queue](lookup_answer& x) { queue->push(std::move(x)); },
    [queue](step_plan& x) { queue->push(std::move(x)); },
    [queue](finish_answer& x) { queue->push(std::move(x)); },
    [queue](stats_answer& x) { queue->push(x); },
    [queue](events_answer& x) { queue->push(std::move(x)); },
    [](msg::snapshot_answer&) {}, // Only tests ask for one.
    [queue](call_done& x) { queue->push(std::move(x)); },
    [queue](call_failed& x) { queue->push(std::move(x)); },
    [queue](load_done& x) { queue->push(x); },
    [queue](load_failed& x) { queue->push(std::move(x)); },
    [queue](blocks_released& x) { queue->push(std::move(x)); },
    [queue](rank_lost& x) { queue->push(x); },
    [queue](rank_back& x) { queue->push(x); },
    [queue](overload& x) { queue->push(x); },
    [queue](cache_lost& x) { queue->push(x); },
  };
}

rank_side_actor::behavior_type
rank_port(rank_side_actor::stateful_pointer<rank_port_state>,
          std::shared_ptr<rank_queue> queue) {
  return {
    [queue](kv_registered& x) { queue->push(std::move(x)); },
    [queue](kv_unregistered& x) { queue->push(x); },
    [queue](step_ready& x) { queue->push(x); },
    [queue](rank_failed& x) { queue->push(std::move(x)); },
  };
}

} // namespace kvtide
