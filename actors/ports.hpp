// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/answers.hpp"

#include "actors/event_queue.hpp"
#include "actors/one_caller.hpp"
#include "messages/watch.hpp"

#include <caf/actor_addr.hpp>
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

  void watch(const msg::watch_rank& x);

  void on_down(const caf::actor_addr& who);

  rank_port_actor::pointer self = nullptr;
  rank_id rank = 0;
  std::shared_ptr<rank_queue> queue;
  /// Null as soon as it is gone.
  caf::actor_addr worker;
  caf::actor_addr device;
};

/// Adds calls that were refused as a second thread made them to what the other
/// side has counted: it never saw them.
/// @param x `stats` or `rank_stats`
/// @param caller may be null
template <class Stats>
void add_refused(Stats& x, const one_caller* caller) {
  if (caller == nullptr)
    return;
  x.order_errors += caller->refused();
  x.order_errors_by_rule[0] += caller->refused();
}

/// The engine's ear inside the actor system: puts what it hears into a queue,
/// and says so when the scheduler that it watches is gone.
/// @param caller who makes the calls; may be null
engine_port_actor::behavior_type
engine_port(engine_port_actor::stateful_pointer<engine_port_state> self,
            std::shared_ptr<engine_queue> queue,
            std::shared_ptr<const one_caller> caller);

/// The rank side's ear inside the actor system. When the worker that it watches
/// is gone it says so, and when the device is gone as well, that no copy can
/// touch the memory any more.
rank_port_actor::behavior_type
rank_port(rank_port_actor::stateful_pointer<rank_port_state> self, rank_id rank,
          std::shared_ptr<rank_queue> queue,
          std::shared_ptr<const one_caller> caller);

} // namespace kvtide
