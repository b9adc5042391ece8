// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "actors/alarm.hpp"
#include "core/publication.hpp"
#include "messages/cache_manager.hpp"
#include "messages/directory.hpp"
#include "messages/publisher.hpp"

#include <caf/actor_addr.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace kvtide {

/// Startup parameters of a publisher's actor.
struct publisher_desk_config {
  std::string replica;
  /// Higher for later lives of the replica.
  std::uint64_t incarnation = 0;
  core::publication::config sizes;
  /// A directory that answers nothing for so long has lost something.
  std::chrono::nanoseconds patience = std::chrono::seconds{2};
  /// A replica that was refused asks again.
  std::chrono::nanoseconds retry = std::chrono::seconds{10};
};

struct publisher_desk_state {
  static inline const char* name = "publisher";

  // -- message handlers -------------------------------------------------------

  void watch(const msg::watch_pool& x);
  void changed(const msg::pool_changed& x);
  void part(const msg::pool_part& x);
  void gone(const msg::pool_gone& x);
  void greet(const msg::knock& x);
  void seated(const msg::enrolled& x);
  void answered(const msg::published& x);
  void woke();
  void on_down(const caf::actor_addr& who);

  // -- helpers ----------------------------------------------------------------

  /// Asks the directory for a seat, if there is a pool to speak of.
  void enroll();

  /// Says what is to be said, and reads what is to be read.
  void go();

  /// Something is under way that has to be answered by then.
  void await(std::chrono::nanoseconds span);

  [[nodiscard]] nanoseconds_t now() const;

  // -- members ----------------------------------------------------------------

  publisher_actor::pointer self = nullptr;
  publisher_desk_config config;
  core::publication said{{}};
  /// Null while there is none.
  caf::actor_addr pool;
  directory_actor directory;
  /// The directory gave it a seat.
  bool has_seat = false;
  /// The last sentence of a refusal, which is logged once.
  std::string refused;
  alarm wake_up;
  nanoseconds_t due = never;
};

/// Hears what changes in a host pool and says it to the directory.
publisher_actor::behavior_type
publisher_desk(publisher_actor::stateful_pointer<publisher_desk_state> self,
               publisher_desk_config config);

} // namespace kvtide
