// SPDX-License-Identifier: Apache-2.0

#include "net/dialer.hpp"

#include "actors/log.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/io/middleman_actor.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <utility>

namespace kvtide::net {

void dialer_state::dial(const dial_now& x) {
  config.guard->dial(
    [find = config.find, name = targets[x.target].name] { return find(name); },
    [to = caf::actor_cast<dialer_actor>(self), index = x.target](dialed end) {
      caf::anon_send(to, dial_ended{index, std::move(end)});
    });
}

void dialer_state::take(const dial_ended& x) {
  const auto peer = x.outcome.peer;
  if (peer == nullptr)
    return fail(x.target, x.outcome.why);
  const auto index = x.target;
  // A deadline, as the other side may never answer (CNT-01).
  self
    ->request(config.broker, config.patience, caf::connect_atom_v,
              caf::io::scribe_ptr{peer}, peer->port())
    .then(
      [this, index, peer](const caf::node_id&,
                          const caf::strong_actor_ptr& published,
                          const std::set<std::string>& interface) {
        const auto why = published == nullptr ? "nothing is published there"
                                              : fault_of(interface);
        if (why.empty())
          return greet(index, published);
        peer->drop_later(why);
        fail(index, why, published == nullptr ? first_pause : wrong_peer_pause);
      },
      [this, index, peer](const caf::error&) {
        peer->drop_later("it did not speak the protocol");
        const auto why = peer->why();
        fail(index, why.empty() ? "the connection was closed" : why);
      });
}

std::string
dialer_state::fault_of(const std::set<std::string>& interface) const {
  const auto found = std::find_if(
    config.kinds.begin(), config.kinds.end(), [&](const peer_kind& kind) {
      return self->system().assignable(interface, kind.interface);
    });
  if (found == config.kinds.end())
    return "who listens there is no " + config.wanted
         + ", or has another version of kvtide";
  if (found->name != config.wanted)
    return "a " + found->name + " listens there: name the address of a "
         + config.wanted;
  return {};
}

void dialer_state::greet(std::size_t index, const caf::strong_actor_ptr& peer) {
  auto& seat = targets[index];
  seat.peer = caf::actor_cast<caf::actor_addr>(peer);
  seat.since = std::chrono::steady_clock::now();
  self->monitor(peer);
  seat.said.clear();
  log().info("network: reached the {} at {}", config.wanted, seat.name);
  config.reached(peer);
}

void dialer_state::on_down(const caf::down_msg& down) {
  for (std::size_t index = 0; index < targets.size(); ++index) {
    auto& seat = targets[index];
    if (seat.peer != down.source)
      continue;
    seat.peer = nullptr;
    // One that is lost at once, over and over, is not dialed faster for it.
    if (std::chrono::steady_clock::now() - seat.since > last_pause)
      seat.pause = first_pause;
    log().warn("network: lost the {} at {}; dialing again", config.wanted,
               seat.name);
    dial_later(index);
  }
}

void dialer_state::fail(std::size_t index, const std::string& why,
                        std::chrono::milliseconds least_pause) {
  auto& seat = targets[index];
  if (std::exchange(seat.said, why) != why)
    log().warn("network: cannot reach the {} at {}: {}; dialing on",
               config.wanted, seat.name, why);
  dial_later(index, least_pause);
}

void dialer_state::dial_later(std::size_t index,
                              std::chrono::milliseconds least_pause) {
  auto& pause = targets[index].pause;
  self->delayed_send(caf::actor_cast<dialer_actor>(self),
                     std::max(pause, least_pause), dial_now{index});
  pause = std::min(2 * pause, last_pause);
}

dialer_actor::behavior_type
dialer(dialer_actor::stateful_pointer<dialer_state> self,
       dialer_config config) {
  auto* state = &self->state;
  state->self = self;
  for (auto& name : config.targets)
    state->targets.push_back({std::move(name), first_pause, {}, {}, {}});
  state->config = std::move(config);
  self->set_down_handler(
    [state](const caf::down_msg& down) { state->on_down(down); });
  for (std::size_t index = 0; index < state->targets.size(); ++index)
    self->send(self, dial_now{index});
  return {
    [state](const dial_now& x) { state->dial(x); },
    [state](const dial_ended& x) { state->take(x); },
  };
}

} // namespace kvtide::net
