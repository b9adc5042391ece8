// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a runtime and its ranks consist of: actors, or who answers without a
/// cache. Includes every actor.

#pragma once

#include "kvtide/runtime.hpp"

#include "actors/alive.hpp"
#include "actors/cache_manager.hpp"
#include "actors/compute_side.hpp"
#include "actors/device.hpp"
#include "actors/gpu_worker.hpp"
#include "actors/no_cache.hpp"
#include "actors/one_caller.hpp"
#include "actors/ports.hpp"
#include "actors/scheduler.hpp"
#include "core/call_faults.hpp"
#include "core/layout.hpp"
#include "gpu/host_event.hpp"
#include "gpu/host_pool_memory.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/send.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kvtide {

struct rank::impl {
  /// Makes a call unless another thread is in one.
  template <class Function>
  void guarded(Function call) {
    if (const auto inside = caller->enter())
      call();
    else
      queue->push(rank_failed{id, core::second_thread("rank")});
  }

  /// A message to a dead actor would vanish, so its sender is told.
  template <class Message>
  void send(Message message) {
    if (stand_in)
      stand_in->answer(message);
    else if (is_alive(worker))
      caf::anon_send(worker, std::move(message));
    else
      queue->push(rank_failed{id, core::no_worker()});
  }

  /// Nobody takes its place: it serves, or its copies still run.
  [[nodiscard]] bool is_taken() const {
    return stand_in || is_alive(worker) || is_alive(device);
  }

  rank_id id = 0;
  incarnation_id incarnation = 1;
  std::shared_ptr<rank_queue> queue;
  std::shared_ptr<one_caller> caller = std::make_shared<one_caller>();
  /// Without a cache: answers instead of the actors, which are null.
  std::optional<no_cache_rank> stand_in;
  rank_port_actor port;
  device_actor device;
  gpu_worker_actor worker;
  std::shared_ptr<gpu::host_event_table> events;
  /// Outlives a device: what it says of a lost GPU holds for the next one.
  std::shared_ptr<compute_side> compute = std::make_shared<compute_side>();
  device_kind kind = device_kind::host;
};

struct runtime::impl {
  explicit impl(const options& options_);

  ~impl();

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

  /// Starts threads, and the actors of the engine and of all ranks.
  void start_actors();

  /// Gives a rank a device and a worker.
  void start_rank(rank::impl& seat);

  options opts;
  caf::actor_system_config config;
  /// Without a cache there is none, and no thread.
  std::optional<caf::actor_system> system;
  std::shared_ptr<const core::layout> shape;
  std::shared_ptr<gpu::host_pool_memory> shared_pool
    = std::make_shared<gpu::host_pool_memory>();
  /// Who pins it.
  std::shared_ptr<shared_pins> pins = std::make_shared<shared_pins>();
  std::shared_ptr<engine_queue> queue;
  std::shared_ptr<one_caller> caller = std::make_shared<one_caller>();
  /// Without a cache: answers instead of the actors, which are null.
  std::optional<no_cache> stand_in;
  engine_port_actor port;
  cache_manager_actor cache;
  scheduler_actor scheduler;
  std::vector<std::unique_ptr<rank>> ranks;
  /// For tests: changes what a device of a rank starts with.
  std::function<void(device_config&)> change_device;
  ticket_id last_ticket = 0;
  /// Simulated time that the engine has asked for.
  nanoseconds_t now = 0;
};

} // namespace kvtide
