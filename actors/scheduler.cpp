// SPDX-License-Identifier: Apache-2.0

/// @file
/// The scheduler's queue, what its parts share, and its behavior.

#include "actors/scheduler.hpp"

#include "actors/order_checks.hpp"
#include "core/store_capability.hpp"
#include "core/store_intent.hpp"

#include <caf/actor_cast.hpp>
#include <caf/error.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <utility>

namespace kvtide {

scheduler_state::~scheduler_state() {
  for (const auto& [id, row] : rows)
    if (row->actor)
      caf::anon_send(row->actor, msg::retire{});
  if (cache) // This one or a later one than whoever spawned us knows.
    caf::anon_send_exit(cache, caf::exit_reason::user_shutdown);
}

// -- the queue ----------------------------------------------------------------

void scheduler_state::push_front(std::vector<scheduler_item> items) {
  queue.insert(queue.begin(), std::make_move_iterator(items.begin()),
               std::make_move_iterator(items.end()));
}

void scheduler_state::pump() {
  if (pumping)
    return; // A handler further up goes on.
  pumping = true;
  while (std::holds_alternative<std::monostate>(phase)) {
    if (checks)
      checks->lives.item_over();
    if (queue.empty()) {
      if (checks && !finishing.empty())
        check_rest();
      break;
    }
    auto item = std::move(queue.front());
    queue.pop_front();
    turn += 1;
    std::visit([this](auto& x) { start(x); }, item);
  }
  pumping = false;
  send_completions();
}

void scheduler_state::done() {
  phase = std::monostate{};
  cache_asked = false;
  pump();
}

void scheduler_state::check_rest() {
  if (opts.delivery != plan_delivery::direct)
    return;
  const auto moment = clock_now();
  const auto is_due
    = later_by(moment, std::chrono::nanoseconds{opts.idle_delay}.count());
  const auto armed = opts.device == device_kind::host_virtual
                  || wake_up.covers(moment, idle_due);
  if (idle_due > is_due || !armed)
    order.breach(core::order_rule::s13,
                 "a finish waits for a step that may "
                 "never come",
                 "request " + std::to_string(finishing.front()));
}

void scheduler_state::unasked(msg::turn_id of, const char* answer) {
  order.breach(core::order_rule::s1, "an answer came without a question",
               std::string{answer} + " of turn " + std::to_string(of)
                 + " came in turn " + std::to_string(turn));
}

void scheduler_state::out_of_order_ticket(const char* what, ticket_id ticket,
                                          ticket_id last) {
  order.breach(core::order_rule::s1, "tickets do not ascend",
               std::string{what} + " with ticket " + std::to_string(ticket)
                 + " came after one with " + std::to_string(last));
}

// -- helpers ------------------------------------------------------------------

bool scheduler_state::ranks_complete() const {
  return std::all_of(ranks.begin(), ranks.end(), [](const rank_seat& seat) {
    return seat.alive && seat.registered;
  });
}

void scheduler_state::fail(ticket_id ticket, request_id id, error reason) {
  wrong_call("a call had no effect", reason.text);
  answer(call_failed{ticket, id, std::move(reason)});
}

void scheduler_state::note_fresh(
  const std::vector<std::vector<block_id>>& blocks) {
  for (const auto& group : blocks)
    for (auto block : group)
      if (block != no_block)
        take_fresh(block);
}

void scheduler_state::take_fresh(block_id block) {
  if (checks)
    checks->loads.allocated(block);
  fresh.add(block);
}

bool scheduler_state::crosses_boundary(const request_row& row) const {
  return core::wanted_tokens(row.wish, *rule) >= row.boundary;
}

void scheduler_state::empty_tables(request_id id, request_row& row) {
  row.update.empty_tables = true;
  row.update.appended.clear();
  row.update.cleared.clear();
  row.open_blocks.empty();
  row.has_table = false;
  if (std::exchange(row.refused, false)) // R5: only who has blocks waits.
    refused.erase(std::remove(refused.begin(), refused.end(), id),
                  refused.end());
  for (group_id g = 0; g < row.sliding.size(); ++g) {
    for (std::size_t i = 0; i < row.sliding[g].size(); ++i)
      sliding.remove(row.sliding[g][i], id, g, i);
    row.sliding[g].clear();
  }
}

void scheduler_state::release_promise(request_row& row) {
  if (row.promise == 0)
    return;
  tell_cache(msg::release_promise{row.promise});
  row.promise = 0;
  slots_gained = true;
}

void scheduler_state::refresh_boundary(request_row& row) {
  row.boundary = core::next_boundary(*shape, row.next, row.wish.prompt);
}

void scheduler_state::drop_if_over(request_id id) {
  const auto* row = find(id);
  if (row != nullptr && row->closed && row->jobs.empty())
    drop(id); // S2: not a message longer.
}

void scheduler_state::drop(request_id id) {
  auto* row = find(id);
  release_promise(*row);
  empty_tables(id, *row);
  if (checks)
    checks->lives.dropped(id);
  if (row->actor) {
    self->demonitor(row->actor.address()); // This end is no loss.
    self->send(row->actor, msg::retire{});
  }
  rows.erase(id);
}

void scheduler_state::watch_blocks(const core::tracked_job& entry,
                                   blocks_of which) {
  for_each_block(entry.work, which,
                 [&](block_id block) { watch.add(block, entry.work.id); });
}

core::per_group<core::key_view>
scheduler_state::last_keys(const request_row* row, job_id ending) const {
  const auto last = row != nullptr && row->closed && row->jobs.size() == 1
                 && row->jobs.front() == ending;
  return last && row->actor ? row->keys.views()
                            : core::per_group<core::key_view>{};
}

// -- behavior -----------------------------------------------------------------

scheduler_actor::behavior_type
scheduler(scheduler_actor::stateful_pointer<scheduler_state> self,
          scheduler_config config, cache_manager_actor cache,
          engine_actor engine) {
  auto& st = self->state;
  st.self = self;
  st.shape = std::move(config.shape);
  st.opts = std::move(config.opts);
  st.epoch = config.epoch;
  st.rule = &core::rules_of(st.opts.rules);
  st.cache = std::move(cache);
  self->monitor(st.cache);
  st.engine = std::move(engine);
  st.order = make_order_log("scheduler", st.opts.order_checks,
                            std::move(config.on_breach));
  if (st.opts.order_checks != order_checks::off)
    st.checks.emplace(st.order, st.opts.ranks,
                      st.rule->reset_keeps_running_slots);
  st.jobs = core::job_table{st.opts.ranks};
  st.ranks.resize(st.opts.ranks);
  // Workers of other processes may say anything; an error of theirs is not
  // ours.
  self->set_error_handler([](const caf::error&) {});
  self->set_down_handler(
    [&st](const caf::down_msg& down) { st.on_down(down.source); });
  return {
    // From the engine.
    [&st](msg::add& x) { st.take_call(x); },
    [&st](msg::extend& x) { st.take_call(x); },
    [&st](msg::lookup& x) { st.take_call(x); },
    [&st](msg::decline& x) { st.take_call(x); },
    [&st](msg::allocate& x) { st.take_call(x); },
    [&st](msg::step& x) { st.take_call(x); },
    [&st](msg::outputs& x) { st.take_call(x); },
    [&st](msg::truncate& x) { st.take_call(x); },
    [&st](msg::finish& x) { st.take_call(x); },
    [&st](msg::reset& x) { st.take_call(x); },
    [&st](msg::get_stats& x) { st.take_call(x); },
    [&st](msg::get_snapshot& x) { st.take_call(x); },
    [&st](msg::take_events& x) { st.take_call(x); },
    [&st](msg::shutdown& x) { st.take_call(x); },
    [&st](msg::advance& x) { st.take_call(x); },
    [&st](msg::sleep& x) { st.take_call(x); },
    [&st](msg::wake& x) { st.take_call(x); },
    [&st](msg::explain& x) { st.take_call(x); },
    // From workers.
    [&st](msg::transfers_done& x) { st.on(x); },
    [&st](msg::ticked& x) { st.on(x); },
    [&st](msg::worker_ready& x) { st.on(x); },
    [&st](msg::worker_left& x) { st.on(x); },
    [&st](const msg::steps_taken& x) { st.on(x); },
    [&st](const msg::chunks_kept& x) { st.on(x); },
    // From requests.
    [&st](msg::store_offer& x) { st.on(x); },
    [&st](msg::load_offer& x) { st.on(x); },
    // From the cache manager.
    [&st](msg::search_result& x) { st.on(x); },
    [&st](msg::stores_prepared& x) { st.on(x); },
    [&st](msg::load_prepared& x) { st.on(x); },
    [&st](msg::rolled_back& x) { st.on(x); },
    [&st](msg::cache_events& x) { st.on(x); },
    [&st](msg::pool_report& x) { st.on(x); },
    [&st](msg::explained& x) { st.on(x); },
    [&st](msg::key_states&) { st.unasked(0, "key_states"); },
    // From itself.
    [&st](msg::timer&) { st.on_timer(); },
  };
}

} // namespace kvtide
