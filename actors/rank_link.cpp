// SPDX-License-Identifier: Apache-2.0

#include "actors/rank_link.hpp"

#include "actors/alive.hpp"
#include "actors/log.hpp"
#include "actors/printable.hpp"
#include "messages/join_terms.hpp"

#include <caf/actor_cast.hpp>
#include <caf/scheduled_actor.hpp>

#include <algorithm>
#include <utility>

namespace kvtide {

// -- message handlers ---------------------------------------------------------

void rank_link_state::knock(const msg::knock& x) {
  if (const auto fault = fault_of(x); fault.code != ec::none) {
    // It is no business of the ranks that have joined.
    if (std::exchange(misfit, fault.text) != fault.text)
      log().warn("a scheduler that was reached is of no use: {}", fault.text);
    return;
  }
  misfit.clear();
  forget_door();
  door = caf::actor_cast<rank_door_actor>(x.door);
  self->monitor(door);
  for (const auto& [rank, one] : seats)
    join(rank);
  arm_timer();
}

void rank_link_state::joined(const msg::joined& x) {
  if (!is_from_door() || !x.scheduler || questions.empty()
      || questions.front().rank != x.rank)
    return ignore("an answer to no question");
  auto* one = take_question();
  if (one == nullptr)
    return ignore("an answer to an earlier life of a rank");
  one->due = never;
  one->refusal.clear();
  log().info("rank {} has joined, incarnation {}", x.rank, x.incarnation);
  self->send(one->worker, msg::attach{x.incarnation, x.epoch, x.scheduler});
}

void rank_link_state::join_refused(const msg::join_refused& x) {
  // It may name no rank: what a rank has sent was not read.
  if (!is_from_door() || questions.empty())
    return ignore("a refusal that nobody asked for");
  const auto rank = questions.front().rank;
  auto* one = take_question();
  if (one == nullptr)
    return ignore("a refusal of an earlier life of a rank");
  const auto why = printable(x.reason);
  if (std::exchange(one->refusal, why) != why)
    log().warn("rank {} may not join: {}", rank, why);
  one->due = x.for_good ? never : clock() + config.retry_delay.count();
  arm_timer();
}

void rank_link_state::host_rank(const msg::host_rank& x) {
  seats[x.rank]
    = {x.life, x.terms, caf::actor_cast<gpu_worker_actor>(x.worker), never, {}};
  if (door)
    join(x.rank);
  arm_timer();
}

void rank_link_state::timer() {
  wake_up.rang();
  const auto moment = clock();
  for (const auto& [rank, one] : seats) {
    if (one.due > moment)
      continue;
    std::erase_if(questions,
                  [rank = rank](const question& x) { return x.rank == rank; });
    join(rank);
  }
  arm_timer();
}

void rank_link_state::on_down(const caf::down_msg& down) {
  // That of an earlier door may come after the next one has knocked, and CAF
  // calls proxies of the same door equal.
  if (!door || door.address().get() != down.source.get())
    return;
  log().info("the scheduler's process cannot be reached any more");
  forget_door();
}

// -- helpers ------------------------------------------------------------------

void rank_link_state::join(rank_id rank) {
  auto& one = seats.at(rank);
  one.due = never;
  if (!is_alive(one.worker))
    return; // Until another life of it is hosted.
  one.due = clock() + config.patience.count();
  questions.push_back({rank, one.life});
  self->send(door, msg::join{msg::protocol_version, one.terms});
}

rank_link_state::seat* rank_link_state::take_question() {
  const auto asked = questions.front();
  questions.pop_front();
  auto& one = seats.at(asked.rank);
  return one.life == asked.life ? &one : nullptr;
}

void rank_link_state::forget_door() {
  if (!door)
    return;
  self->demonitor(door.address());
  door = nullptr;
  questions.clear();
  for (auto& [rank, one] : seats)
    one.due = never;
}

bool rank_link_state::is_from_door() const {
  const auto& sender = self->current_sender();
  return door && sender && sender->address().get() == door.address().get();
}

void rank_link_state::ignore(std::string_view what) {
  if (ignored++ == 0)
    log().warn("{} came from a peer; further ones are only counted", what);
}

nanoseconds_t rank_link_state::clock() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
           self->clock().now().time_since_epoch())
    .count();
}

void rank_link_state::arm_timer() {
  auto due = never;
  for (const auto& [rank, one] : seats)
    due = std::min(due, one.due);
  if (const auto wait = wake_up.set(clock(), due))
    self->delayed_send(self, *wait, msg::timer{});
}

// -- behavior -----------------------------------------------------------------

rank_link_actor::behavior_type
rank_link(rank_link_actor::stateful_pointer<rank_link_state> self,
          rank_link_config config) {
  auto& st = self->state;
  st.self = self;
  st.config = std::move(config);
  for (const auto& one : std::exchange(st.config.ranks, {}))
    st.host_rank(one);
  self->set_default_handler(caf::drop); // Peers may say anything.
  self->set_down_handler([&st](const caf::down_msg& x) { st.on_down(x); });
  return {
    [&st](const msg::knock& x) { st.knock(x); },
    [&st](const msg::joined& x) { st.joined(x); },
    [&st](const msg::join_refused& x) { st.join_refused(x); },
    [&st](const msg::host_rank& x) { st.host_rank(x); },
    [&st](const msg::timer&) { st.timer(); },
  };
}

} // namespace kvtide
