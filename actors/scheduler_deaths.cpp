// SPDX-License-Identifier: Apache-2.0

/// @file
/// What goes on when an actor dies that the scheduler works with. Whatever the
/// item in progress asked it is answered in its place, as if it had nothing.

#include "actors/cache_manager.hpp"
#include "actors/log.hpp"
#include "actors/scheduler.hpp"

#include <utility>

namespace kvtide {

namespace {

/// A cache manager that dies so often before anything was asked of it will die
/// again.
constexpr std::uint32_t hopeless = 3;

} // namespace

void scheduler_state::on_down(const caf::actor_addr& who) {
  if (cache && cache.address() == who)
    return lose_cache();
  // CAF calls the proxies of one actor equal: of an earlier connection it may
  // be heard when the next one is there.
  for (rank_id r = 0; r < ranks.size(); ++r)
    if (ranks[r].worker && ranks[r].worker.address().get() == who.get())
      return lose_worker(r);
  lose_device(who);
  for (auto i = rows.begin(); i != rows.end(); ++i)
    if (auto& row = *i.value(); row.actor && row.actor.address() == who)
      return lose_request(i.key(), row);
}

// -- the cache manager --------------------------------------------------------

void scheduler_state::lose_cache() {
  cache = nullptr;
  completions.jobs.clear();       // Of what it knew.
  queue.push_front(cache_gone{}); // Before anything else asks for it.
  if (cache_asked)
    answer_for_cache();
  else
    pump();
}

void scheduler_state::start(cache_gone&) {
  counters.lost_caches += 1;
  cache_losses_in_a_row += 1;
  if (cache_losses_in_a_row < hopeless) {
    log().error("scheduler: the cache manager is gone; another one starts "
                "empty");
    start_cache();
  } else {
    log().error("scheduler: the cache manager dies as soon as it starts; the "
                "host pool is out of use until the next reset");
  }
  forget_everything(); // Slots of running copies are not handed out (R9).
  self->send(engine, cache_lost{});
}

void scheduler_state::start_cache() {
  cache = self->spawn(cache_manager, cache_manager_config{shape, opts});
  self->monitor(cache);
  self->send(cache, msg::open_pool{pool_slots});
}

void scheduler_state::answer_for_cache() {
  if (auto* lookup = std::get_if<lookup_phase>(&phase); lookup != nullptr) {
    auto nothing = msg::search_result{};
    nothing.turn = turn;
    for (auto row : lookup->searched) {
      auto& answer = nothing.answers.emplace_back();
      answer.tokens = 0;
      answer.end_tokens = find(lookup->hits[row].request)->local;
    }
    on(nothing);
  } else if (auto* step = std::get_if<step_phase>(&phase); step != nullptr) {
    auto no_room = core::store_grant{};
    no_room.settled_tokens = 0;
    auto nothing = msg::stores_prepared{turn, {}, {}};
    nothing.offers.resize(step->offered.size());
    nothing.grants.resize(step->offered.size(), no_room);
    on(nothing);
  } else if (std::holds_alternative<allocate_phase>(phase)) {
    auto nothing = msg::load_prepared{};
    nothing.turn = turn;
    nothing.grant.absent = 0;
    on(nothing);
  } else if (std::holds_alternative<rollback_phase>(phase)) {
    auto nothing = msg::rolled_back{};
    nothing.turn = turn;
    on(nothing);
  } else if (std::holds_alternative<report_phase>(phase)) {
    auto nothing = msg::pool_report{};
    nothing.turn = turn;
    on(nothing);
  } else if (auto* explain = std::get_if<explain_phase>(&phase);
             explain != nullptr) {
    auto nothing = msg::explained{};
    nothing.turn = turn;
    if (explain->obstacle == miss_reason::none)
      explain->obstacle = miss_reason::cache_lost;
    on(nothing);
  } else if (std::holds_alternative<events_phase>(phase)) {
    auto nothing = msg::cache_events{};
    nothing.turn = turn;
    on(nothing);
  }
}

// -- requests -----------------------------------------------------------------

void scheduler_state::lose_request(request_id id, request_row& row) {
  if (counters.lost_requests++ == 0)
    log().error("scheduler: the actor of request {} is gone; the request goes "
                "on without the cache. Further ones are only counted",
                id);
  // Its block tables are lost with it.
  row.actor = nullptr;
  empty_tables(id, row);
  row.update = {};
  answer_for_request(id);
}

void scheduler_state::answer_for_request(request_id id) {
  if (auto* step = std::get_if<step_phase>(&phase); step != nullptr) {
    auto* row = find(id);
    if (row->asked_in != turn || step->participants[row->place].answered)
      return;
    auto nothing = msg::store_offer{turn, id, {}};
    nothing.plan.storable = row->next;
    on(nothing);
  } else if (auto* allocation = std::get_if<allocate_phase>(&phase);
             allocation != nullptr && allocation->request == id
             && !allocation->offered) {
    auto nothing = msg::load_offer{};
    nothing.turn = turn;
    nothing.request = id;
    on(nothing);
  }
}

} // namespace kvtide
