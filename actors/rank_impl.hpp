// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/runtime.hpp"

#include "actors/alive.hpp"
#include "actors/compute_side.hpp"
#include "actors/device.hpp"
#include "actors/gpu_worker.hpp"
#include "actors/no_cache.hpp"
#include "actors/one_caller.hpp"
#include "actors/ports.hpp"
#include "core/call_faults.hpp"
#include "gpu/host_event.hpp"

#include <caf/send.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace kvtide {

/// What a rank consists of.
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

} // namespace kvtide
