// SPDX-License-Identifier: Apache-2.0

#include "net/caf_network.hpp"

#include "net/certificates.hpp"
#include "net/entrance.hpp"
#include "net/new_name.hpp"
#include "net/sockets.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/openssl/manager.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <utility>

namespace kvtide::net {

namespace {

using namespace std::chrono_literals;

template <class Handle>
std::set<std::string> interface_of(const caf::actor_system& sys) {
  return sys.message_types(caf::detail::type_list<Handle>{});
}

/// All that a network of this library publishes and others dial.
std::vector<peer_kind> kinds_of_peers(const caf::actor_system& sys) {
  return {{"scheduler", interface_of<rank_door_actor>(sys)},
          {"worker", interface_of<rank_link_port>(sys)},
          {"directory", interface_of<directory_actor>(sys)}};
}

/// Several in the time after which silence means a loss.
std::chrono::milliseconds heartbeat(const network_options& opts) {
  return std::max<std::chrono::milliseconds>(opts.detection / 8, 20ms);
}

/// A handshake takes time on a busy machine, however fast a loss is noticed.
std::chrono::milliseconds patience(const network_options& opts) {
  return std::max<std::chrono::milliseconds>(opts.detection, 1s);
}

} // namespace

error fault_of_reach(const network_options& opts,
                     const std::vector<endpoint>& where,
                     const std::string& option) {
  if (uses_tls(opts) || opts.insecure)
    return {};
  for (const auto& x : where)
    if (!is_loopback(x))
      return {ec::invalid_options,
              option + ": " + to_string(x)
                + " is not loopback; name certificate, private_key and "
                  "trusted, or set insecure if everybody who reaches the "
                  "network may read and write the cache's plans"};
  return {};
}

caf_network::caf_network(network_options opts, std::vector<endpoint> where,
                         std::size_t backlog)
  : opts_(std::move(opts)), where_(std::move(where)) {
  home_->detection = opts_.detection;
  home_->backlog = backlog;
}

caf_network::~caf_network() {
  close();
}

void caf_network::prepare(caf::actor_system_config& config) {
  config.load<caf::io::middleman>();
  load_new_name(config);
  // One thread reads what the peers send: nothing overtakes.
  config.set("middleman.workers", std::size_t{0});
  // Nobody talks to CAF's own dialers, so they need no threads.
  config.set("middleman.attach-utility-actors", true);
  config.set("middleman.heartbeat-interval", caf::timespan{heartbeat(opts_)});
  config.set("middleman.connection-timeout", caf::timespan{opts_.detection});
  if (!uses_tls(opts_))
    return;
  config.load<caf::openssl::manager>();
  config.openssl_certificate = opts_.certificate;
  config.openssl_key = opts_.private_key;
  config.openssl_cafile = opts_.trusted;
}

error caf_network::open_door(caf::actor_system& sys,
                             const rank_door_actor& door,
                             const std::vector<std::string>& addresses) {
  auto config = dialer_config{};
  config.targets = addresses;
  config.wanted = "worker";
  const auto self = caf::actor_cast<caf::strong_actor_ptr>(door);
  config.reached = [self](const caf::strong_actor_ptr& peer) {
    caf::anon_send(caf::actor_cast<rank_link_port>(peer),
                   msg::knock{msg::protocol_version, self});
  };
  return open(sys, {self, interface_of<rank_door_actor>(sys)},
              std::move(config));
}

error caf_network::open_link(caf::actor_system& sys, const rank_link_port& link,
                             const std::string& scheduler) {
  auto config = dialer_config{};
  if (!scheduler.empty())
    config.targets = {scheduler};
  config.wanted = "scheduler";
  return seek(sys, link, std::move(config));
}

error caf_network::open_directory(caf::actor_system& sys,
                                  const directory_actor& desk) {
  return open(sys,
              {caf::actor_cast<caf::strong_actor_ptr>(desk),
               interface_of<directory_actor>(sys)},
              {});
}

error caf_network::open_seeker(caf::actor_system& sys,
                               const directory_seeker& user,
                               const std::string& address) {
  auto config = dialer_config{};
  config.targets = {address};
  config.wanted = "directory";
  return seek(sys, user, std::move(config));
}

template <class Handle>
error caf_network::seek(caf::actor_system& sys, const Handle& user,
                        dialer_config config) {
  config.reached = [user](const caf::strong_actor_ptr& peer) {
    caf::anon_send(user, msg::knock{msg::protocol_version, peer});
  };
  return open(
    sys,
    {caf::actor_cast<caf::strong_actor_ptr>(user), interface_of<Handle>(sys)},
    std::move(config));
}

error caf_network::open(caf::actor_system& sys, published what,
                        dialer_config config) {
  if (std::exchange(used_, true))
    return {ec::invalid_options, "network serves, or served, another runtime "
                                 "or worker; make one for each"};
  auto fault = open_all(sys, std::move(what), std::move(config));
  if (fault.code != ec::none)
    close();
  return fault;
}

error caf_network::open_all(caf::actor_system& sys, published what,
                            dialer_config config) {
  if (where_.empty() && config.targets.empty())
    return {ec::invalid_options, "network listens nowhere and has nobody to "
                                 "dial: set network_options::listen or name "
                                 "an address"};
  if (auto fault = fault_of_targets(config.targets); fault.code != ec::none)
    return fault;
  broker_
    = sys.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  porter_ = std::make_shared<porter>(
    porter::settings{&sys, uses_tls(opts_), patience(opts_), home_});
  if (auto fault = porter_->start(); fault.code != ec::none)
    return fault;
  if (!where_.empty())
    if (auto fault = publish(sys, std::move(what)); fault.code != ec::none)
      return fault;
  if (config.targets.empty())
    return {};
  config.guard = porter_;
  config.broker = broker_;
  config.patience = patience(opts_);
  config.kinds = kinds_of_peers(sys);
  config.find
    = [opts = opts_](const std::string& name) -> result<std::vector<endpoint>> {
    auto address = core::read_peer_address(name, "the address");
    if (!address)
      return address.failure();
    auto found = resolve(address.value(), "the address");
    if (!found)
      return found;
    // The name may mean another place by now.
    if (auto fault = fault_of_reach(opts, found.value(), name);
        fault.code != ec::none)
      return fault;
    return found;
  };
  dialer_ = sys.spawn(dialer, std::move(config));
  return {};
}

error caf_network::publish(caf::actor_system& sys, published what) {
  auto listener = listen_on(where_, opts_.listen);
  if (!listener)
    return listener.failure();
  auto& mpx = static_cast<connection::multiplexer&>(sys.middleman().backend());
  auto door = caf::make_counted<entrance>(porter_, std::move(listener).value(),
                                          home_, mpx);
  {
    const auto guard = std::lock_guard{mutex_};
    address_ = door->addr();
  }
  port_ = door->port();
  caf::anon_send(broker_, caf::publish_atom_v,
                 caf::io::doorman_ptr{std::move(door)}, port_,
                 std::move(what.actor), std::move(what.interface));
  return {};
}

error caf_network::fault_of_targets(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    const auto address = core::read_peer_address(name, "the address to dial");
    if (!address)
      return address.failure();
    const auto found = resolve(address.value(), "the address to dial");
    if (!found)
      return found.failure();
    if (auto fault = fault_of_reach(opts_, found.value(), name);
        fault.code != ec::none)
      return fault;
  }
  return {};
}

void caf_network::close() {
  if (dialer_ != nullptr)
    caf::anon_send_exit(dialer_, caf::exit_reason::user_shutdown);
  dialer_ = nullptr;
  if (broker_ != nullptr && port_ != 0)
    caf::anon_send(broker_, caf::close_atom_v, port_);
  broker_ = nullptr;
  port_ = 0;
  if (porter_ != nullptr)
    porter_->stop();
  porter_ = nullptr;
}

std::string caf_network::address() const {
  const auto guard = std::lock_guard{mutex_};
  return address_;
}

std::size_t caf_network::connections() const {
  return home_->connections;
}

std::uint64_t caf_network::refusals() const {
  return home_->refusals.count();
}

} // namespace kvtide::net
