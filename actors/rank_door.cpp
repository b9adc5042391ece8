// SPDX-License-Identifier: Apache-2.0

#include "actors/rank_door.hpp"

#include "actors/log.hpp"
#include "messages/join_terms.hpp"

#include <caf/actor_cast.hpp>
#include <caf/error.hpp>
#include <caf/scheduled_actor.hpp>

#include <random>
#include <utility>

namespace kvtide {

namespace {

/// Every option of these terms is compared; rank and life are not.
join_terms own_terms(const options& opts) {
  return terms_of(opts, 0, 0);
}

bool is_elsewhere(const options& opts, rank_id rank) {
  return rank < opts.workers.size()
      && opts.workers[rank].where != worker_place::kind::here;
}

std::string name_of(rank_id rank) {
  return "rank " + std::to_string(rank);
}

} // namespace

std::uint64_t random_life() {
  auto source = std::random_device{};
  return std::uint64_t{source()} << 32 | source();
}

// -- message handlers ---------------------------------------------------------

void rank_door_state::join(const msg::join& x) {
  if (!self->current_sender())
    return; // Nobody is there to be answered.
  if (x.protocol != msg::protocol_version)
    return refuse(
      0,
      "the scheduler speaks version " + std::to_string(msg::protocol_version)
        + " of the protocol and the rank version " + std::to_string(x.protocol)
        + "; use the same version of the library in all processes",
      true);
  const auto read = decode_terms(x.terms);
  if (!read)
    return refuse(0, read.failure().text, true);
  const auto& terms = read.value();
  if (auto fault = fault_of(own_terms(config.opts), terms);
      fault.code != ec::none)
    return refuse(terms.rank, std::move(fault.text), true);
  if (terms.rank >= seats.size())
    return refuse(terms.rank,
                  name_of(terms.rank) + " does not exist: there are "
                    + std::to_string(seats.size()) + " ranks, counted from 0",
                  true);
  if (!is_elsewhere(config.opts, terms.rank))
    return refuse(terms.rank,
                  name_of(terms.rank)
                    + " lives in the scheduler's process; options.workers says "
                      "which ranks live elsewhere",
                  true);
  auto& seat = seats[terms.rank];
  const auto link = self->current_sender()->address();
  const auto is_same = seat.incarnation > 0 && seat.life == terms.life;
  if (!is_same && seat.link != link && links.count(seat.link) > 0)
    return refuse(terms.rank,
                  name_of(terms.rank)
                    + " is taken by another process until its loss is noticed",
                  false);
  if (!is_same)
    seat = {seat.incarnation + 1, terms.life, {}};
  seat.link = link;
  if (links.insert(link).second)
    self->monitor(self->current_sender());
  log().info("rank {} is let in, incarnation {}", terms.rank, seat.incarnation);
  self->send(sender(), msg::joined{terms.rank, seat.incarnation, config.epoch,
                                   caf::actor_cast<caf::strong_actor_ptr>(
                                     config.scheduler)});
}

void rank_door_state::on_down(const caf::actor_addr& who) {
  if (config.scheduler.address() == who)
    return self->quit(); // It never held a rank.
  links.erase(who);
}

// -- helpers ------------------------------------------------------------------

void rank_door_state::refuse(rank_id rank, std::string reason, bool for_good) {
  if (std::exchange(logged, reason) != reason)
    log().warn("a rank is refused: {}", reason);
  self->send(sender(), msg::join_refused{msg::protocol_version, rank,
                                         std::move(reason), for_good});
}

rank_link_port rank_door_state::sender() const {
  return caf::actor_cast<rank_link_port>(self->current_sender());
}

// -- behavior -----------------------------------------------------------------

rank_door_actor::behavior_type
rank_door(rank_door_actor::stateful_pointer<rank_door_state> self,
          rank_door_config config) {
  auto& st = self->state;
  st.self = self;
  st.config = std::move(config);
  st.seats.resize(st.config.opts.ranks);
  self->monitor(st.config.scheduler);
  // Peers may say anything.
  self->set_default_handler(caf::drop);
  self->set_error_handler([](const caf::error&) {});
  self->set_down_handler(
    [&st](const caf::down_msg& down) { st.on_down(down.source); });
  return {
    [&st](const msg::join& x) { st.join(x); },
  };
}

} // namespace kvtide
