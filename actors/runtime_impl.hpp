// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a runtime consists of: actors, or who answers without a cache. Includes
/// every actor.

#pragma once

#include "kvtide/runtime.hpp"

#include "actors/alive.hpp"
#include "actors/cache_manager.hpp"
#include "actors/no_cache.hpp"
#include "actors/one_caller.hpp"
#include "actors/ports.hpp"
#include "actors/rank_home.hpp"
#include "actors/scheduler.hpp"
#include "core/call_faults.hpp"
#include "core/layout.hpp"
#include "messages/join.hpp"

#include <caf/send.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace kvtide {

struct runtime::impl : rank_home {
  using rank_home::rank_home;

  ~impl() override;

  /// Makes a call unless another thread is in one.
  template <class Message>
  ticket_id send(Message message) {
    if (const auto inside = caller->enter())
      return send_inside(std::move(message));
    return refuse();
  }

  /// A second thread called: it must not touch anything here.
  ticket_id refuse() const {
    queue->push(call_failed{0, 0, core::second_thread("runtime")});
    return 0;
  }

  /// A message to a dead actor would vanish, so its sender is told.
  /// @pre no other thread is inside
  template <class Message>
  ticket_id send_inside(Message message) {
    message.ticket = ++last_ticket;
    if (stand_in)
      stand_in->answer(message);
    else if (is_alive(scheduler))
      caf::anon_send(scheduler, std::move(message));
    else
      queue->push(call_failed{last_ticket, 0, core::no_scheduler()});
    return last_ticket;
  }

  [[nodiscard]] bool serves() const {
    return stand_in || is_alive(scheduler);
  }

  /// Nobody is started: with no room for a cache there is nothing to decide.
  void start_without_cache();

  /// Starts threads, and the actors of the engine and of all ranks that live
  /// here.
  void start_actors();

  /// Lets ranks of other processes in, and dials those that wait for it.
  [[nodiscard]] error open_door();

  void start_worker(rank::impl& seat) override;

  std::shared_ptr<const core::layout> shape;
  std::shared_ptr<engine_queue> queue;
  std::shared_ptr<one_caller> caller = std::make_shared<one_caller>();
  /// Without a cache: answers instead of the actors, which are null.
  std::optional<no_cache> stand_in;
  engine_port_actor port;
  cache_manager_actor cache;
  scheduler_actor scheduler;
  /// Null if all ranks live here.
  rank_door_actor door;
  /// See `scheduler_config::epoch`.
  std::uint64_t epoch = 0;
  /// The network has to be closed.
  bool opened = false;
  ticket_id last_ticket = 0;
};

} // namespace kvtide
