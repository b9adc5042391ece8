// SPDX-License-Identifier: Apache-2.0

/// @file
/// Scheduler, requests, cache manager and workers as the runtime has them, with
/// neighbours that cost as little as possible: a device whose copies end at
/// once, compute that ends at once, and an engine that only takes note.

#pragma once

#include "kvtide/options.hpp"

#include "bench/load.hpp"
#include "messages/all.hpp"
#include "messages/scheduler.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/send.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

namespace kvtide::bench {

/// What the neighbours have noted. Read by the engine's thread.
struct notes {
  /// The last step whose plan the engine has.
  std::atomic<step_id> planned{0};
  /// When compute of the last step was let go on rank 0.
  std::atomic<std::chrono::steady_clock::time_point> begun_at{};
  /// Answers to lookups.
  std::atomic<std::size_t> lookups{0};
};

class actors_under_test {
public:
  using clock = std::chrono::steady_clock;

  /// @param threads that run the actors; zero means the caller's own, one
  ///        message after the other, without any wake-up
  actors_under_test(const load_config& config, std::size_t threads);

  actors_under_test(const actors_under_test&) = delete;

  actors_under_test& operator=(const actors_under_test&) = delete;

  ~actors_under_test();

  template <class Message>
  void send(Message message) {
    message.ticket = ++ticket_;
    caf::anon_send(scheduler_, std::move(message));
  }

  /// Runs, or waits, until every message is handled.
  void settle();

  /// Microseconds from the call of `step`.
  struct timing {
    /// Until rank 0 may compute: `begin_step` has left the scheduler, and the
    /// worker has answered it.
    double begin = 0;
    /// Until every message is handled.
    double all = 0;
  };

  timing step(step_call call);

private:
  struct config_type;

  [[nodiscard]] bool all_idle() const;

  std::size_t threads_;
  std::unique_ptr<config_type> config_;
  std::unique_ptr<caf::actor_system> system_;
  std::shared_ptr<notes> notes_ = std::make_shared<notes>();
  scheduler_actor scheduler_;
  /// Everybody but requests, in the order in which messages go round.
  std::vector<caf::strong_actor_ptr> actors_;
  ticket_id ticket_ = 0;
};

} // namespace kvtide::bench
