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
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kvtide::bench {

/// What the neighbours have noted. Read by the engine's thread.
struct notes {
  /// The last step whose plan the engine has.
  std::atomic<step_id> planned{0};
  /// When the last `begin_step` was put into the mailbox of rank 0's worker.
  std::atomic<std::chrono::steady_clock::time_point> begin_left{};
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

  /// From here on every message is counted by kind before it is handled.
  /// @pre no threads
  void count_messages(std::map<std::string, std::size_t>& counts) {
    counts_ = &counts;
  }

  /// Microseconds from the call of `step`.
  struct timing {
    /// Until `begin_step` has left the scheduler for rank 0.
    double begin = 0;
    /// Until every message is handled.
    double all = 0;
  };

  timing step(step_call call);

private:
  struct config_type;

  /// From here on it is noted when `begin_step` leaves for rank 0.
  /// @pre nobody runs
  void watch_begin_step();

  [[nodiscard]] bool all_idle() const;

  void run_and_count();

  std::size_t threads_;
  std::unique_ptr<config_type> config_;
  std::unique_ptr<caf::actor_system> system_;
  std::shared_ptr<notes> notes_ = std::make_shared<notes>();
  scheduler_actor scheduler_;
  /// Everybody but requests, in the order in which messages go round.
  std::vector<caf::strong_actor_ptr> actors_;
  ticket_id ticket_ = 0;
  std::map<std::string, std::size_t>* counts_ = nullptr;
};

} // namespace kvtide::bench
