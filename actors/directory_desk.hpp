// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/replica_directory.hpp"
#include "messages/directory.hpp"

#include <caf/actor_addr.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace kvtide {

/// More in a message is refused: peers send less.
inline constexpr std::size_t most_published_keys = 8'192;
inline constexpr std::size_t most_asked_runs = 64;
inline constexpr std::size_t most_asked_keys = std::size_t{1} << 20;

struct directory_desk_state {
  static inline const char* name = "directory";

  /// Who speaks for a replica.
  struct speaker {
    caf::actor_addr who;
    core::replica_directory::seat_id seat = 0;
  };

  // -- message handlers -------------------------------------------------------

  void enroll(const msg::enroll& x);
  void withdraw(const msg::withdraw& x);
  void publish(const msg::publish& x);
  void ask(const msg::ask_replicas& x);
  void on_down(const caf::actor_addr& who);

  // -- helpers ----------------------------------------------------------------

  /// Handles a message if there is somebody to answer: peers can send without.
  template <class Message>
  void heard(const Message& x,
             void (directory_desk_state::*handle)(const Message&)) {
    if (self->current_sender())
      (this->*handle)(x);
  }

  /// Gives the sender a seat.
  /// @returns why not
  std::string seat(const msg::enroll& x);

  [[nodiscard]] std::vector<speaker>::iterator find(const caf::actor_addr& who);

  /// Forgets a replica.
  void drop(std::vector<speaker>::iterator at, const char* why);

  [[nodiscard]] msg::published take(const msg::publish& x);

  [[nodiscard]] msg::replicas_found answer(const msg::ask_replicas& x);

  [[nodiscard]] directory_user_port sender() const;

  // -- members ----------------------------------------------------------------

  directory_actor::pointer self = nullptr;
  core::replica_directory replicas{{}};
  std::vector<speaker> speakers;
};

/// Hears what replicas have, and answers who has most of a prompt.
directory_actor::behavior_type
directory_desk(directory_actor::stateful_pointer<directory_desk_state> self,
               core::replica_directory::config config);

} // namespace kvtide
