// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/directory.hpp"

#include "actors/alarm.hpp"
#include "core/replica_chooser.hpp"
#include "messages/router.hpp"

#include <caf/actor_addr.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <string>

namespace kvtide {

/// Questions that may wait for a directory.
inline constexpr std::size_t most_questions = 4'096;

/// Startup parameters of a router's actor, see `router_options`.
struct router_desk_config {
  std::chrono::nanoseconds timeout{0};
  double least_share = 0;
};

struct router_desk_state {
  static inline const char* name = "router";

  struct question {
    ticket_id ticket = 0;
    token_count tokens = 0;
    nanoseconds_t due = never;
    std::function<void(replica_choice)> answer;
  };

  // -- message handlers -------------------------------------------------------

  void ask(msg::route& x);
  void greet(const msg::knock& x);
  void found(msg::replicas_found& x);
  void woke();
  void on_down(const caf::actor_addr& who);

  // -- helpers ----------------------------------------------------------------

  static void fail(const question& what, const char* why);

  void arm();

  [[nodiscard]] nanoseconds_t now() const;

  // -- members ----------------------------------------------------------------

  router_actor::pointer self = nullptr;
  std::chrono::nanoseconds timeout{0};
  core::replica_chooser chooser{0};
  directory_actor directory;
  /// In the order in which they have to be answered.
  std::deque<question> open;
  alarm wake_up;
};

/// Carries questions to a directory, and answers each in time.
router_actor::behavior_type
router_desk(router_actor::stateful_pointer<router_desk_state> self,
            router_desk_config config);

} // namespace kvtide
