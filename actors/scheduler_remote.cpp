// SPDX-License-Identifier: Apache-2.0

/// @file
/// Ranks in other processes: who speaks for them, how far they have come, and
/// what their next life has found.

#include "actors/scheduler.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace kvtide {

namespace {

/// Plans that may be on their way to a rank while stores are planned for it.
constexpr step_id longest_lag = 64;

/// How far `x` is behind `y`; negative if it is ahead.
std::int64_t behind(step_id x, step_id y) {
  return static_cast<std::int64_t>(y - x);
}

caf::actor_addr address_of(const caf::strong_actor_ptr& actor) {
  return caf::actor_cast<caf::actor_addr>(actor);
}

} // namespace

// -- messages of their workers ------------------------------------------------

void scheduler_state::on(msg::worker_ready& x) {
  auto joined = rank_joined{
    x, caf::actor_cast<gpu_worker_actor>(self->current_sender()), 0, {}};
  if (x.rank < ranks.size()) {
    if (x.remote && !take_speaker(x, joined.worker))
      return;
    auto& seat = ranks[x.rank];
    joined.join = ++seat.joins;
    if (seat.worker == joined.worker)
      seat.last_join = joined.join;
    auto& found = ranks[x.rank].found;
    if (found.incarnation == x.incarnation
        && found.from == address_of(self->current_sender()))
      joined.kept = found.chunks.take();
    if (found.incarnation <= x.incarnation)
      found = {}; // Nobody else will need it.
  }
  push(std::move(joined));
}

bool scheduler_state::take_speaker(const msg::worker_ready& x,
                                   const gpu_worker_actor& worker) {
  auto& seat = ranks[x.rank];
  if (!worker || x.incarnation < seat.newest) {
    counters.late_messages += 1;
    if (worker)
      answer_worker({x, worker, 0, {}}, "a later life of this rank is there");
    return false;
  }
  seat.newest = x.incarnation;
  seat.speaker = worker.address();
  if (seat.worker && seat.worker.address().get() != worker.address().get()) {
    // Its old connection is lost, whoever notices that later. Nobody waits for
    // what it would have said.
    lose_worker(x.rank);
  }
  return true;
}

void scheduler_state::on(msg::worker_left& x) {
  if (comes_late(x.rank, x.incarnation))
    return;
  push(std::move(x));
}

void scheduler_state::on(const msg::steps_taken& x) {
  if (comes_late(x.rank, x.incarnation))
    return;
  if (x.rank >= ranks.size() || ranks[x.rank].incarnation != x.incarnation
      || behind(x.step, last_step) < 0)
    return order.breach(core::order_rule::s12,
                        "a rank has taken a step that was not planned for it",
                        "rank " + std::to_string(x.rank) + ", step "
                          + std::to_string(x.step));
  auto& seat = ranks[x.rank];
  if (behind(seat.taken, x.step) <= 0)
    return;
  const auto lagged = lags(seat);
  seat.taken = x.step;
  if (lagged && !lags(seat))
    slots_gained = true; // Requests were refused meanwhile.
}

void scheduler_state::on(const msg::chunks_kept& x) {
  if (x.rank >= ranks.size())
    return order.breach(core::order_rule::s12,
                        "chunks are named of a rank that does not exist",
                        "rank " + std::to_string(x.rank));
  auto& seat = ranks[x.rank];
  auto& found = seat.found;
  if (x.incarnation <= std::max(seat.incarnation, seat.newest)
      || x.incarnation < found.incarnation) {
    counters.late_messages += 1;
    return;
  }
  const auto sender = address_of(self->current_sender());
  if (found.incarnation != x.incarnation || found.from != sender) {
    found = {};
    found.incarnation = x.incarnation;
    found.from = sender;
  }
  if (pool_slots == 0)
    return; // Nothing was ever stored.
  for (const auto& chunk : x.chunks)
    if (!found.chunks.add({chunk.slot, {chunk.digest_low, chunk.digest_high}},
                          pool_slots))
      wrong_call("a rank names a slot that the pool does not have, or one "
                 "twice, as kept",
                 "rank " + std::to_string(x.rank) + ", slot "
                   + std::to_string(chunk.slot));
}

// -- helpers ------------------------------------------------------------------

void scheduler_state::answer_worker(const rank_joined& to,
                                    std::string refusal) {
  if (!to.ready.remote)
    return;
  self->send(to.worker, msg::seat{to.ready.call, std::move(refusal),
                                  stepped ? last_step + 1 : 0});
}

void scheduler_state::refuse(const rank_joined& who, std::string why) {
  wrong_call(why, "rank " + std::to_string(who.ready.rank));
  answer_worker(who, std::move(why));
}

bool scheduler_state::comes_late(rank_id rank, incarnation_id incarnation) {
  const auto late = rank < ranks.size()
                 && (incarnation < ranks[rank].incarnation || is_cut_off(rank));
  counters.late_messages += late;
  return late;
}

bool scheduler_state::is_cut_off(rank_id rank) const {
  return rank < ranks.size() && ranks[rank].speaker
      && ranks[rank].speaker.compare(self->current_sender()) != 0;
}

bool scheduler_state::lags(const rank_seat& seat) const {
  return seat.remote && seat.alive && opts.delivery == plan_delivery::direct
      && last_step - seat.taken > longest_lag;
}

std::vector<job_id> scheduler_state::late_jobs(rank_id rank) const {
  auto out = std::vector<job_id>{};
  for (const auto& [id, entry] : jobs.all())
    if (entry.is_late(rank) && !is_orphaned(id, rank))
      out.push_back(id);
  return out;
}

void scheduler_state::end_copies_of(rank_id rank) {
  auto over = device_gone{rank, late_jobs(rank)};
  start(over);
}

} // namespace kvtide
