// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/directory.hpp"

#include "messages/directory.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <memory>
#include <optional>

namespace kvtide {

/// An actor system for those who deal with a directory, apart from those of
/// the runtimes: what crosses the network takes none of their threads.
class directory_node {
public:
  /// @param network null for none
  explicit directory_node(std::shared_ptr<kvtide::network> network);

  directory_node(const directory_node&) = delete;
  directory_node& operator=(const directory_node&) = delete;

  /// Ends all actors that were told to.
  ~directory_node();

  [[nodiscard]] caf::actor_system& system() noexcept {
    return *system_;
  }

  /// Serves `desk` to peers that dial in.
  [[nodiscard]] error serve(const directory_actor& desk);

  /// Keeps dialing `address`; tells `user` of the directory there whenever it
  /// is reached.
  [[nodiscard]] error dial(const directory_seeker& user,
                           const std::string& address);

  /// Without effect if there is none.
  void close_network();

  [[nodiscard]] std::string address() const;

private:
  caf::actor_system_config config_;
  std::shared_ptr<kvtide::network> network_;
  std::optional<caf::actor_system> system_;
};

struct directory::impl {
  ~impl();

  std::shared_ptr<directory_node> node;
  directory_actor desk;
};

struct directory_access {
  static directory::impl& impl_of(const directory& x) noexcept {
    return *x.impl_;
  }
};

/// Who deals with a directory: the node of his own, or the directory's.
/// @returns `ec::invalid_options`
[[nodiscard]] result<std::shared_ptr<directory_node>>
node_for(const directory_place& place);

/// Tells `user` where the directory is, now and whenever it is found again.
[[nodiscard]] error introduce(directory_node& node,
                              const directory_seeker& user,
                              const directory_place& place);

} // namespace kvtide
