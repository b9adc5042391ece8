// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the actors need of a network. `net/` has the one of CAF's middleman;
/// whoever links none of it has no sockets.

#pragma once

#include "kvtide/network.hpp"

#include "messages/directory.hpp"
#include "messages/join.hpp"

#include <caf/fwd.hpp>

#include <string>
#include <vector>

namespace kvtide {

/// Each `open_` is called once, and one of them only. Whoever is dialed and
/// turns out to be something else is left alone, with a sentence in the log.
class network {
public:
  network() = default;
  network(const network&) = delete;
  network& operator=(const network&) = delete;
  virtual ~network() = default;

  /// Adds what the network needs to a configuration, before its system starts.
  virtual void prepare(caf::actor_system_config& config) = 0;

  /// Publishes a door where `network_options::listen` says, and keeps dialing
  /// `addresses`, where links listen, to knock in its name.
  [[nodiscard]] virtual error
  open_door(caf::actor_system& sys, const rank_door_actor& door,
            const std::vector<std::string>& addresses)
    = 0;

  /// Publishes a link where `network_options::listen` says, or keeps dialing
  /// `scheduler`, where a door listens, and knocks at the link in its name
  /// whenever it is reached.
  [[nodiscard]] virtual error open_link(caf::actor_system& sys,
                                        const rank_link_port& link,
                                        const std::string& scheduler)
    = 0;

  /// Publishes a directory where `network_options::listen` says.
  [[nodiscard]] virtual error open_directory(caf::actor_system& sys,
                                             const directory_actor& desk)
    = 0;

  /// Keeps dialing `address`, where a directory listens, and knocks at `user`
  /// in its name whenever it is reached.
  [[nodiscard]] virtual error open_seeker(caf::actor_system& sys,
                                          const directory_seeker& user,
                                          const std::string& address)
    = 0;

  /// Stops to dial and to listen; before the system ends.
  virtual void close() = 0;

  /// See `address_of`.
  [[nodiscard]] virtual std::string address() const = 0;
};

} // namespace kvtide
