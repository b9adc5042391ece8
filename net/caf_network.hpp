// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "actors/network.hpp"
#include "net/dialer.hpp"
#include "net/porter.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace kvtide::net {

/// CAF's middleman, with the strangers kept out of it (porter.hpp).
class caf_network final : public network {
public:
  /// @param where what `opts.listen` means; empty if nobody dials in
  /// @param backlog bytes that may wait for a peer that does not read
  caf_network(network_options opts, std::vector<endpoint> where,
              std::size_t backlog = longest_backlog);

  ~caf_network() override;

  void prepare(caf::actor_system_config& config) override;

  error open_door(caf::actor_system& sys, const rank_door_actor& door,
                  const std::vector<std::string>& addresses) override;

  error open_link(caf::actor_system& sys, const rank_link_port& link,
                  const std::string& scheduler) override;

  error open_directory(caf::actor_system& sys,
                       const directory_actor& desk) override;

  error open_seeker(caf::actor_system& sys, const directory_seeker& user,
                    const std::string& address) override;

  void close() override;

  std::string address() const override;

  // -- for tests --------------------------------------------------------------

  /// Connections that are open, and those that were turned away so far.
  [[nodiscard]] std::size_t connections() const;
  [[nodiscard]] std::uint64_t refusals() const;

private:
  struct published {
    caf::strong_actor_ptr actor;
    std::set<std::string> interface;
  };

  /// Publishes `user`, who hears of each peer that `config` finds.
  template <class Handle>
  [[nodiscard]] error seek(caf::actor_system& sys, const Handle& user,
                           dialer_config config);

  [[nodiscard]] error open(caf::actor_system& sys, published what,
                           dialer_config config);

  [[nodiscard]] error open_all(caf::actor_system& sys, published what,
                               dialer_config config);

  [[nodiscard]] error publish(caf::actor_system& sys, published what);

  [[nodiscard]] error fault_of_targets(const std::vector<std::string>& names);

  const network_options opts_;
  const std::vector<endpoint> where_;
  const std::shared_ptr<household> home_ = std::make_shared<household>();
  mutable std::mutex mutex_;
  std::string address_;
  bool used_ = false;
  std::shared_ptr<porter> porter_;
  dialer_actor dialer_;
  /// CAF's broker, and what it has of ours.
  caf::actor broker_;
  std::uint16_t port_ = 0;
};

/// What is wrong with `where`: without certificates only loopback will do,
/// unless everybody is welcome. `ec::none` if nothing is.
[[nodiscard]] error fault_of_reach(const network_options& opts,
                                   const std::vector<endpoint>& where,
                                   const std::string& option);

} // namespace kvtide::net
