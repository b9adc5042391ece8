// SPDX-License-Identifier: Apache-2.0

#include "actors/ports.hpp"

#include "core/call_faults.hpp"

#include <utility>

namespace kvtide {

engine_port_actor::behavior_type
engine_port(engine_port_actor::stateful_pointer<engine_port_state> self,
            std::shared_ptr<engine_queue> queue,
            std::shared_ptr<const one_caller> caller) {
  self->set_down_handler([queue](caf::down_msg&) {
    queue->push(runtime_lost{core::no_scheduler()});
  });
  return {
    [queue](lookup_answer& x) { queue->push(std::move(x)); },
    [queue](step_plan& x) { queue->push(std::move(x)); },
    [queue](finish_answer& x) { queue->push(std::move(x)); },
    [queue, caller](stats_answer& x) {
      add_refused(x.values, caller.get());
      queue->push(x);
    },
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
    [queue](explain_answer& x) { queue->push(std::move(x)); },
    [self](msg::watch_scheduler& x) { self->monitor(x.scheduler); },
  };
}

// -- rank port ----------------------------------------------------------------

void rank_port_state::watch(const msg::watch_rank& x) {
  worker = x.worker->address();
  device = x.device->address();
  self->monitor(x.worker);
  self->monitor(x.device);
}

void rank_port_state::on_down(const caf::actor_addr& who) {
  if (worker == who) {
    worker = nullptr;
    queue->push(rank_failed{rank, core::no_worker()});
  } else if (device == who) {
    device = nullptr;
  } else {
    return;
  }
  if (!worker && !device)
    queue->push(kv_unregistered{rank});
}

rank_port_actor::behavior_type
rank_port(rank_port_actor::stateful_pointer<rank_port_state> self, rank_id rank,
          std::shared_ptr<rank_queue> queue,
          std::shared_ptr<const one_caller> caller) {
  auto& st = self->state;
  st.self = self;
  st.rank = rank;
  st.queue = queue;
  self->set_down_handler(
    [&st](caf::down_msg& down) { st.on_down(down.source); });
  return {
    [queue](kv_registered& x) { queue->push(std::move(x)); },
    [queue](kv_unregistered& x) { queue->push(x); },
    [queue](step_ready& x) { queue->push(x); },
    [queue](rank_failed& x) { queue->push(std::move(x)); },
    [queue, caller](rank_stats& x) {
      add_refused(x, caller.get());
      queue->push(x);
    },
    [&st](msg::watch_rank& x) { st.watch(x); },
  };
}

} // namespace kvtide
