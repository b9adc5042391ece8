// SPDX-License-Identifier: Apache-2.0

#include "net/simple_link.hpp"

#include "actors/log.hpp"

#include <caf/actor_cast.hpp>
#include <caf/scheduled_actor.hpp>

namespace kvtide::net {

void simple_link_state::add(const link_rank& x) {
  ranks[x.terms.rank] = x;
  ask(x);
}

void simple_link_state::knock(const msg::knock& x) {
  if (!x.door)
    return;
  door = caf::actor_cast<rank_door_actor>(x.door);
  self->monitor(door);
  for (const auto& [id, rank] : ranks)
    ask(rank);
}

void simple_link_state::joined(const msg::joined& x) {
  if (const auto i = ranks.find(x.rank); i != ranks.end())
    self->send(i->second.worker,
               msg::attach{x.incarnation, x.epoch, x.scheduler});
}

void simple_link_state::refused(const msg::join_refused& x) {
  log().warn("rank {}: {}", x.rank, x.reason);
}

void simple_link_state::on_down(const caf::down_msg& down) {
  if (door != nullptr && down.source == door.address())
    door = nullptr;
}

void simple_link_state::ask(const link_rank& x) {
  if (door != nullptr)
    self->send(door, msg::join{msg::protocol_version, encode_terms(x.terms)});
}

simple_link_actor::behavior_type
simple_link(simple_link_actor::stateful_pointer<simple_link_state> self) {
  auto* state = &self->state;
  state->self = self;
  self->set_default_handler(caf::drop); // Peers may say anything.
  self->set_down_handler(
    [state](const caf::down_msg& down) { state->on_down(down); });
  return {
    [state](const msg::knock& x) { state->knock(x); },
    [state](const msg::joined& x) { state->joined(x); },
    [state](const msg::join_refused& x) { state->refused(x); },
    [state](const link_rank& x) { state->add(x); },
  };
}

} // namespace kvtide::net
