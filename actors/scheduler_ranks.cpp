// SPDX-License-Identifier: Apache-2.0

/// @file
/// Ranks that come and go.

#include "actors/log.hpp"
#include "actors/scheduler.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace kvtide {

void scheduler_state::start(rank_joined& x) {
  const auto rank = x.ready.rank;
  const auto life = x.ready.incarnation;
  if (rank < ranks.size() && ranks[rank].alive
      && ranks[rank].incarnation == life && ranks[rank].worker == x.worker
      && !(ranks[rank].remote && ranks[rank].registered)) {
    // Its memory is registered again; its host pool was there all along. If it
    // had never left, its connection is another one.
    ranks[rank].registered = true;
    ranks[rank].join = x.join;
    slots_gained = true; // Requests were refused meanwhile.
    answer_worker(x, {});
    return open_pool_if_complete();
  }
  if (rank < ranks.size() && ranks[rank].alive
      && (ranks[rank].incarnation < life
          || (x.ready.remote && ranks[rank].incarnation == life))) {
    // A later life or connection ends the one before, even if that is still to
    // be heard of.
    auto ended = std::vector<scheduler_item>{};
    ended.push_back(rank_gone{rank, ranks[rank].join});
    ended.push_back(std::move(x));
    return push_front(std::move(ended));
  }
  if (rank >= ranks.size() || ranks[rank].alive)
    return refuse(x,
                  "a worker joined as a rank that does not exist or is taken");
  auto& seat = ranks[rank];
  if (x.ready.slots < pool_slots)
    return refuse(x, "a worker came back with fewer slots than the pool has");
  const auto is_back = seat.joined;
  const auto same_life = x.ready.remote && seat.incarnation == life;
  seat.worker = x.worker;
  seat.join = x.join;
  seat.last_join = std::max(seat.last_join, x.join);
  seat.device = nullptr;
  seat.incarnation = life;
  seat.slots = x.ready.slots;
  seat.joined = seat.alive = seat.registered = true;
  seat.remote = x.ready.remote;
  seat.taken = last_step;
  self->monitor(seat.worker);
  answer_worker(x, {});
  if (x.ready.device && !seat.remote) {
    seat.device = x.ready.device->address();
    self->monitor(x.ready.device);
  }
  if (is_back) {
    if (same_life) {
      // Its host pool was there all along, and so were its copies.
      slots_gained = true;
      if (auto late = late_jobs(rank); !late.empty())
        self->send(seat.worker, msg::report_again{{}, std::move(late)});
    } else {
      // Of its old life's host pool there is what it has found.
      end_copies_of(rank);
      forget_everything(std::move(x.kept));
    }
    self->send(engine, rank_back{rank, life, same_life});
  }
  open_pool_if_complete();
}

void scheduler_state::open_pool_if_complete() {
  if (pool_slots > 0 || !ranks_complete())
    return;
  pool_slots = ranks.front().slots; // AGG-04: what every rank has.
  for (const auto& other : ranks)
    pool_slots = std::min(pool_slots, other.slots);
  tell_cache(msg::open_pool{pool_slots});
  slots_gained = true; // Requests that came before the ranks were refused.
}

void scheduler_state::start(msg::worker_left& x) {
  if (x.rank >= ranks.size() || ranks[x.rank].incarnation < x.incarnation)
    return order.breach(core::order_rule::s12,
                        "a rank left that has not joined",
                        "rank " + std::to_string(x.rank) + ", incarnation "
                          + std::to_string(x.incarnation));
  if (ranks[x.rank].incarnation == x.incarnation)
    ranks[x.rank].registered = false;
  else
    counters.late_messages += 1;
}

void scheduler_state::lose_worker(rank_id rank) {
  auto& seat = ranks[rank];
  seat.worker = nullptr;
  push(rank_gone{rank, seat.last_join});
  // It answers no more; the item in progress must not wait for it.
  if (auto* tick = std::get_if<advance_phase>(&phase); tick != nullptr)
    rank_ticked(*tick, rank);
}

void scheduler_state::lose_device(const caf::actor_addr& who) {
  for (auto& seat : ranks)
    if (seat.device == who)
      seat.device = nullptr; // Its worker says what that means.
  const auto i = std::find_if(orphans.begin(), orphans.end(),
                              [&](const orphan& x) { return x.device == who; });
  if (i == orphans.end())
    return;
  auto ended = std::move(i->copies);
  orphans.erase(i);
  push(std::move(ended));
}

void scheduler_state::start(rank_gone& x) {
  auto& seat = ranks[x.rank];
  if (!seat.alive || seat.join > x.join)
    return;
  seat.alive = seat.registered = false;
  log().error("scheduler: rank {} is gone; nothing is stored or found until it "
              "is back",
              x.rank);
  self->send(engine, rank_lost{x.rank, seat.incarnation});
  auto reports = std::vector<scheduler_item>{};
  const auto report = [&](job_id id, rank_id rank, job_status status) {
    reports.push_back(presumed_report{
      msg::transfer_done{id, rank, ranks[rank].incarnation, status, 0}});
  };
  // None may hear of these any more: whoever takes this rank's place has
  // another host pool.
  const auto unheard = fail_unheard_loads(reports);
  // All else is over when the device is gone, which may come later: until then
  // it may read and write what it was told to (S7, S8). Of one in another
  // process nobody hears until this life or a later one is ready (CNT-01).
  auto copies = device_gone{x.rank, {}};
  for (const auto& [id, entry] : jobs.all()) {
    const auto silent = entry.is_silent(x.rank);
    if ((!silent && !entry.is_late(x.rank)) || unheard.count(id) > 0)
      continue;
    if (seat.device)
      copies.jobs.push_back(id);
    if (!seat.device && !seat.remote)
      report(id, x.rank, silent ? job_status::failed : job_status::drained);
    else if (silent)
      report(id, x.rank, job_status::late);
  }
  if (!copies.jobs.empty())
    orphans.push_back({seat.device, std::move(copies)});
  push_front(std::move(reports));
}

std::set<job_id>
scheduler_state::fail_unheard_loads(std::vector<scheduler_item>& out) {
  auto unheard = std::set<job_id>{};
  for (const auto& work : std::exchange(waiting_loads, {})) {
    unheard.insert(work.id);
    leftover_flush.erase(work.id); // Nor is anybody to wait for them (S4).
    for (rank_id r = 0; r < ranks.size(); ++r)
      out.push_back(presumed_report{msg::transfer_done{
        work.id, r, ranks[r].incarnation, job_status::failed, 0}});
  }
  return unheard;
}

void scheduler_state::start(device_gone& x) {
  for (auto id : x.jobs)
    if (jobs.report(id, x.rank, job_status::drained, 0)
        == core::job_table::effect::drained)
      end_late_copies(id);
}

} // namespace kvtide
