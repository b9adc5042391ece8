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
      [this, index](const caf::node_id&, const caf::strong_actor_ptr& published,
                    const std::set<std::string>& interface) {
        greet(index, published, interface);
      },
      [this, index, peer](const caf::error&) {
        peer->drop_later("it did not speak the protocol");
        const auto why = peer->why();
        fail(index, why.empty() ? "the connection was closed" : why);
      });
}

void dialer_state::greet(std::size_t index, const caf::strong_actor_ptr& peer,
                         const std::set<std::string>& interface) {
  auto& seat = targets[index];
  if (peer == nullptr)
    return fail(index, "nothing is published there");
  if (!self->system().assignable(interface, config.interface))
    return fail(index, "who is published there is no " + config.what);
  seat.peer = caf::actor_cast<caf::actor_addr>(peer);
  seat.since = std::chrono::steady_clock::now();
  self->monitor(peer);
  seat.said.clear();
  log().info("network: reached the {} at {}", config.what, seat.name);
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
    log().warn("network: lost the {} at {}; dialing again", config.what,
               seat.name);
    dial_later(index);
  }
}

void dialer_state::fail(std::size_t index, const std::string& why) {
  auto& seat = targets[index];
  if (std::exchange(seat.said, why) != why)
    log().warn("network: cannot reach the {} at {}: {}; dialing on",
               config.what, seat.name, why);
  dial_later(index);
}

void dialer_state::dial_later(std::size_t index) {
  auto& pause = targets[index].pause;
  self->delayed_send(caf::actor_cast<dialer_actor>(self), pause,
                     dial_now{index});
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
