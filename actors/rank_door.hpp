// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/options.hpp"

#include "messages/join.hpp"
#include "messages/scheduler.hpp"

#include <caf/actor_addr.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace kvtide {

/// A random number: which life of a scheduler or of a rank's memory this is.
[[nodiscard]] std::uint64_t random_life();

/// Startup parameters of the door.
struct rank_door_config {
  options opts;
  scheduler_worker_port scheduler;
  /// As `scheduler_config::epoch`.
  std::uint64_t epoch = 0;
};

/// State of the door. What it remembers has one entry per rank and one per link
/// that holds a rank, whatever peers say.
struct rank_door_state {
  static inline const char* name = "rank-door";

  /// The last life of a rank that was let in.
  struct rank_seat {
    incarnation_id incarnation = 0;
    std::uint64_t life = 0;
    caf::actor_addr link;
  };

  // -- message handlers -------------------------------------------------------

  void join(const msg::join& x);

  void on_down(const caf::actor_addr& who);

  // -- helpers ----------------------------------------------------------------

  void refuse(rank_id rank, std::string reason, bool for_good);

  /// Whoever asked.
  [[nodiscard]] rank_link_port sender() const;

  // -- members ----------------------------------------------------------------

  rank_door_actor::pointer self = nullptr;
  rank_door_config config;
  /// One per rank.
  std::vector<rank_seat> seats;
  /// Links that hold a rank, or did; each is watched once.
  std::set<caf::actor_addr> links;
  /// The refusal that was logged last: a peer that asks again and again fills
  /// no log.
  std::string logged;
};

/// Lets ranks of other processes in, and numbers their lives: the same life has
/// the same incarnation however often its connection was lost, another one has
/// the next. A rank is taken from the moment that one life was let in until its
/// link is known to be gone, or until the same link brings another life. Ends
/// with the scheduler.
/// @param config Validated by the caller.
rank_door_actor::behavior_type
rank_door(rank_door_actor::stateful_pointer<rank_door_state> self,
          rank_door_config config);

} // namespace kvtide
