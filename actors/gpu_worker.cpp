// SPDX-License-Identifier: Apache-2.0

#include "actors/gpu_worker.hpp"

#include "actors/log.hpp"
#include "actors/order_checks.hpp"
#include "core/call_faults.hpp"
#include "core/store_writer.hpp"
#include "messages/plan_bytes.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_clock.hpp>
#include <caf/error.hpp>
#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace kvtide {

namespace {

bool names(const std::vector<job>& list, job_id id) {
  return std::any_of(list.begin(), list.end(),
                     [id](const job& x) { return x.id == id; });
}

/// `ids` without those of `jobs`.
std::vector<job_id> without(const std::vector<job_id>& ids,
                            const std::vector<job>& jobs) {
  std::vector<job_id> result;
  result.reserve(ids.size());
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(result),
               [&jobs](job_id id) { return !names(jobs, id); });
  return result;
}

/// What an actor said when it ended, if anything.
std::string why_gone(const caf::error& reason, std::string_view who) {
  if (reason && reason.context().match_elements<std::string>())
    return reason.context().get_as<std::string>(0);
  return "the " + std::string{who} + " is gone";
}

} // namespace

gpu_worker_config worker_config_of(const options& opts, rank_id rank,
                                   incarnation_id incarnation) {
  auto out = gpu_worker_config{};
  out.rank = rank;
  out.incarnation = incarnation;
  out.rule = &core::rules_of(opts.rules);
  out.job_deadline = opts.job_deadline;
  out.idle_delay = opts.idle_delay;
  out.virtual_time = opts.device == device_kind::host_virtual;
  out.delivery = opts.delivery;
  out.model_fingerprint = opts.model_fingerprint;
  out.order_checks = opts.order_checks;
  return out;
}

// -- message handlers ---------------------------------------------------------

void gpu_worker_state::begin_step(const msg::begin_step& plan) {
  if (in_order(plan)) {
    take(plan);
    return take_early_stores();
  }
  note_plan(core::order_rule::s12, "a plan came out of order", plan.step);
  refuse(plan.flushed_stores);
  refuse(plan.loads);
}

void gpu_worker_state::stores(const msg::stores& plan) {
  if (plan.step == arrived)
    return take(plan);
  if (!arrived)
    return fail(plan.jobs); // Computed in an earlier life of this rank (S6).
  if (plan.step > *arrived) {
    early.push_back(plan);
    return;
  }
  note_plan(core::order_rule::s12, "stores came out of order", plan.step);
  refuse(plan.jobs);
}

void gpu_worker_state::pause(const msg::pause& x) {
  paused_behind = x.step;
  hand_over_before_sleep();
}

void gpu_worker_state::tick(const msg::tick& req) {
  if (target && tick_lost) { // Time goes on, and somebody waits again.
    target = std::max(*target, req.now);
    tick_lost = false;
    return;
  }
  if (!config.virtual_time || target) {
    order.breach(core::order_rule::s12,
                 "a tick came while time moves without it",
                 "to " + std::to_string(req.now) + " ns");
    if (target)
      target = std::max(*target, req.now);
    return;
  }
  target = std::max(now, req.now);
  tick_lost = false;
  tick_device();
}

void gpu_worker_state::report_again(const msg::report_again& req) {
  for (const auto id : req.silent) {
    if (const auto* known = outcomes.find(id)) {
      report(id, known->status, known->first_failed_row, true);
      if (known->status == job_status::late && !ledger.contains(id))
        report(id, job_status::drained, 0, true);
    } else if (!is_here(id)) {
      // Its plan was lost. Should it still come, it comes too late.
      ++failed_jobs;
      report(id, job_status::failed, 0, true);
    }
  }
  for (const auto id : req.late) {
    if (ledger.contains(id))
      ledger.make_late(id); // For this rank as well: it will be drained.
    else
      report(id, job_status::drained, 0, true);
  }
}

void gpu_worker_state::register_kv(const msg::register_kv& req) {
  const auto& kv = req.memory;
  if (memory != memory_state::none)
    return refuse_registration(
      {ec::out_of_order, "memory is registered already: call unregister_kv and "
                         "await its answer"});
  if (scheduler_gone)
    return refuse_registration(core::no_scheduler());
  if (auto fault = core::fault_of(kv, config.rank, config.model_fingerprint);
      fault.code != ec::none)
    return refuse_registration(std::move(fault));
  writer = kv.writer;
  writers = kv.writers;
  memory = memory_state::registering;
  self->send(device, msg::register_memory{kv});
}

void gpu_worker_state::unregister_kv() {
  if (memory != memory_state::registered)
    return tell_rank({ec::out_of_order,
                      "no memory is registered: call register_kv and await its "
                      "answer first"});
  if (checks)
    checks->leaving();
  if (!config.remote || introduced)
    self->send(scheduler, msg::worker_left{config.rank, config.incarnation});
  // Content that is computed but not stored yet would be lost, and its jobs
  // with it: nobody has to begin another step.
  if (ended)
    submit(std::exchange(deferred, {}), {});
  memory = memory_state::unregistering;
  fail(std::exchange(deferred, {}));
  for (auto& plan : held) {
    fail(std::exchange(plan.flushed_stores, {}));
    fail(std::exchange(plan.loads, {}));
    fail(std::exchange(plan.stores, {}));
  }
  for (const auto& plan : std::exchange(early, {}))
    fail(plan.jobs);
  self->send(device, msg::unregister_memory{});
}

void gpu_worker_state::await_step(const msg::await_step& req) {
  if (scheduler_gone)
    return tell_rank(core::no_scheduler());
  if (is_joining()) {
    unanswered.push_back(req);
    return;
  }
  if (is_alone() || is_missed(req.step)) {
    // Not even a plan that the engine carries is looked at: the scheduler does
    // not ask this rank how its jobs end.
    note_awaited(req.step);
    return run_held_plans();
  }
  if (req.plan.empty() && config.delivery == plan_delivery::by_engine)
    return tell_rank(
      {ec::invalid_argument,
       "begin_step(" + std::to_string(req.step)
         + ") came without a plan: with plan_delivery::by_engine "
           "pass step_plan::bytes"});
  // Without a plan the engine relies on the scheduler's, which leads to
  // `step_ready` by itself.
  if (req.plan.empty()) {
    note_awaited(req.step);
    return run_held_plans();
  }
  auto decoded = decode_plan(req.plan);
  if (!decoded)
    return tell_rank(decoded.failure());
  const auto& plan = decoded.value();
  if (plan.begin.step != req.step)
    return tell_rank(
      {ec::invalid_argument, "begin_step(" + std::to_string(req.step)
                               + ") came with the plan of step "
                               + std::to_string(plan.begin.step)});
  if (config.remote && plan.epoch != epoch) {
    note_late();
    return tell_rank({ec::out_of_order,
                      "begin_step(" + std::to_string(req.step)
                        + ") came with the plan of a scheduler that is gone: "
                          "pass those of the present one"});
  }
  if (!in_order(plan.begin)) {
    const auto text = "begin_step(" + std::to_string(req.step)
                    + ") is not the next one: pass every plan once, in order";
    note_plan(core::order_rule::call, "a rank passed a plan out of order",
              req.step);
    return tell_rank({ec::out_of_order, text});
  }
  note_awaited(req.step);
  take(plan.begin);
  take(plan.stores);
  take_early_stores();
}

void gpu_worker_state::end_step(const msg::end_step& req) {
  if (!begun || req.step != *begun || ended || awaiting_fence) {
    const auto text = "end_step(" + std::to_string(req.step)
                    + ") must follow step_ready of the same step, once";
    note_plan(core::order_rule::call, "end_step came out of order", req.step);
    return tell_rank({ec::out_of_order, text});
  }
  ended = true;
  computed = lap;
  events = req.events;
  idle_since = clock();
  if (checks)
    checks->ended(*lap, idle_since);
  run_held_plans();
  hand_over_before_sleep();
  arm_timer();
}

void gpu_worker_state::get_stats() {
  self->send(rank_side,
             rank_stats{config.rank, order.total(), order.counts(), late_jobs,
                        failed_jobs, copied_bytes, copy_time, late_messages});
}

void gpu_worker_state::memory_registered(const msg::memory_registered& answer) {
  if (answer.reason.code != ec::none) {
    memory = memory_state::none;
    refuse_registration(answer.reason);
    return quit_if_over();
  }
  memory = memory_state::registered;
  slots = answer.slots;
  kept_chunks = answer.kept;
  // Before its process hears of it, and tells the engine.
  say_worker_ready();
  auto known = kv_registered{};
  known.rank = config.rank;
  known.slots = answer.slots;
  known.slot_bytes = answer.slot_bytes;
  known.notes = answer.notes;
  self->send(rank_side, std::move(known));
  quit_if_over();
}

void gpu_worker_state::memory_unregistered() {
  memory = memory_state::none;
  self->send(rank_side, kv_unregistered{config.rank});
  quit_if_over();
}

void gpu_worker_state::copies_done(const msg::copies_done& x) {
  unsent.reports.reserve(x.jobs.size());
  for (const auto& one : x.jobs)
    copy_ended(one);
  copied_bytes += x.bytes;
  copy_time += x.copy_time;
  if (copies_of_before && ledger.size() == 0) {
    unsent.reports.clear(); // To the new scheduler these are other jobs.
    copies_of_before = false;
    say_worker_ready();
  }
  quit_if_over();
}

void gpu_worker_state::copy_ended(const msg::copy_done& x) {
  switch (ledger.end(x.job)) {
    case core::transfer_ledger::ending::unknown:
      order.breach(core::order_rule::s9, "a job ended that is not in flight",
                   "job " + std::to_string(x.job));
      return;
    case core::transfer_ledger::ending::late:
      report(x.job, job_status::drained);
      break;
    case core::transfer_ledger::ending::in_time:
      if (x.ok) {
        report(x.job, job_status::done);
        break;
      }
      if (failed_jobs++ == 0)
        log().warn("rank {}: job {} failed: {}; further ones are only counted",
                   config.rank, x.job, x.text);
      report(x.job, job_status::failed, x.first_failed_row);
      break;
  }
}

void gpu_worker_state::fence_made(const msg::fence_made& answer) {
  if (!awaiting_fence || answer.step != lap) {
    return note_plan(core::order_rule::s12,
                     "a fence came that nobody waits for", answer.step);
  }
  say_ready(answer.wait_for);
  quit_if_over();
}

void gpu_worker_state::device_ticked(const msg::device_ticked& answer) {
  if (looking) {
    report_late(*std::exchange(looking, std::nullopt));
    return arm_timer();
  }
  if (!target) {
    order.breach(core::order_rule::s12,
                 "the device moved in time without being asked");
    return;
  }
  now = std::max(now, asked);
  // Copies that end at the very moment of their deadline are in time: they were
  // announced before this message.
  if (fire_due(now) || now < *target)
    return tick_device();
  if (is_alone() && ledger.size() > 0 && answer.next_due != never) {
    target = std::max(now, answer.next_due);
    return tick_device();
  }
  finish_tick(answer.next_due);
}

void gpu_worker_state::timer() {
  wake_up.rang();
  fire_due(clock());
  arm_timer();
}

void gpu_worker_state::on_down(const caf::down_msg& down) {
  // Whoever stops the runtime knows it.
  const auto stopped = down.reason == caf::exit_reason::user_shutdown;
  const auto at_device = device.address() == down.source;
  if (config.remote && !at_device) {
    // That of an earlier connection may come after the next one is there, and
    // CAF calls the two proxies equal.
    if (scheduler && scheduler.address().get() == down.source.get())
      scheduler_lost();
    return;
  }
  const auto why = why_gone(down.reason, at_device ? "device" : "scheduler");
  if (!stopped)
    log().error("rank {}: {} ({} jobs in flight)", config.rank, why,
                ledger.size());
  if (at_device)
    device_down(why);
  else
    scheduler_down();
}

void gpu_worker_state::device_down(const std::string& why) {
  for (const auto& [id, ending] : ledger.clear()) {
    const auto late = ending == core::transfer_ledger::ending::late;
    report(id, late ? job_status::drained : job_status::failed);
  }
  fail(std::exchange(deferred, {}));
  // Nobody is left without an answer.
  if (memory == memory_state::registering)
    refuse_registration({ec::device_failure, why});
  else if (memory == memory_state::unregistering)
    memory_unregistered();
  else
    tell_rank({ec::device_failure, why});
  if (awaiting_fence)
    say_ready({});
  if (target) {
    now = *target;
    finish_tick(never);
  }
  // Without a device this is no rank: the scheduler is to know it lost.
  self->quit(caf::sec::runtime_error);
}

void gpu_worker_state::scheduler_down() {
  scheduler_gone = true;
  deferred.clear();
  held.clear();
  early.clear();
  tell_rank(core::no_scheduler());
  quit_if_over();
}

void gpu_worker_state::quit_if_over() {
  if (!scheduler_gone)
    return;
  // Simulated time stands still now, and with it every copy.
  const auto asked_device = memory == memory_state::registering
                         || memory == memory_state::unregistering
                         || awaiting_fence || ledger.size() > 0;
  if (config.virtual_time || !asked_device)
    self->quit(caf::exit_reason::user_shutdown);
}

// -- helpers: plans -----------------------------------------------------------

bool gpu_worker_state::in_order(const msg::begin_step& plan) const {
  return !arrived || plan.step == *arrived + 1;
}

void gpu_worker_state::take(const msg::begin_step& plan) {
  arrived = plan.step;
  say_how_far();
  outcomes.forget_below(plan.settled_below);
  path.begin_step();
  held_plan added;
  added.step = plan.step;
  added.loads = take_jobs(plan.loads);
  added.flushed_stores = take_jobs(plan.flushed_stores);
  added.flush.reserve(plan.flush.size());
  for (const auto id : plan.flush)
    if (must_await(id, added))
      added.flush.push_back(id);
  if (begun_alone && plan.step <= *begun) {
    // The engine asked this rank before its scheduler did. Its stores may still
    // come.
    caught_up = plan.step == *begun;
    drop(added);
    return run_held_plans();
  }
  held.push_back(std::move(added));
  run_held_plans();
  arm_timer();
}

bool gpu_worker_state::must_await(job_id id, const held_plan& plan) {
  if (config.remote) // Those of an earlier connection may never have come here.
    return is_here(id) || names(plan.flushed_stores, id)
        || names(plan.loads, id);
  if (path.is_older(id))
    return false; // Nothing that this device was given waits for it.
  if (!path.may_be_known(id))
    order.breach(core::order_rule::s4,
                 "a step waits for a job that was never planned",
                 "begin_step(" + std::to_string(plan.step) + "), job "
                   + std::to_string(id));
  return path.may_be_known(id);
}

void gpu_worker_state::take(const msg::stores& plan) {
  if (checks)
    checks->planned(plan.jobs, lap_of_arrived(), clock());
  auto jobs = take_jobs(plan.jobs);
  if (!held.empty()) {
    auto& kept = held.back().stores;
    std::move(jobs.begin(), jobs.end(), std::back_inserter(kept));
    return;
  }
  // The rank has skipped this step, or a later one may have written what these
  // were to read, and its flush came too late (S5, S6).
  if (begun != plan.step)
    return fail(jobs);
  defer(std::move(jobs));
  hand_over_before_sleep();
  arm_timer();
}

std::vector<job> gpu_worker_state::take_jobs(const std::vector<job>& jobs) {
  std::vector<job> result;
  result.reserve(jobs.size());
  for (const auto& x : jobs) {
    if (!path.take(x.id, x.kind) || ledger.contains(x.id))
      order.breach(core::order_rule::s4,
                   "a job came twice, or behind later ones",
                   "job " + std::to_string(x.id));
    else if (outcomes.find(x.id) != nullptr)
      order.breach(core::order_rule::s12,
                   "a job came after it had been reported failed",
                   "job " + std::to_string(x.id));
    else
      result.push_back(x);
  }
  if (!result.empty())
    kept_chunks.clear(); // From here on slots change.
  return result;
}

void gpu_worker_state::refuse(const std::vector<job>& jobs) {
  auto lost = jobs;
  std::erase_if(lost, [this](const job& x) { return is_here(x.id); });
  fail(lost);
}

bool gpu_worker_state::is_here(job_id id) const {
  const auto in
    = [id](const std::vector<job>& list) { return names(list, id); };
  return ledger.contains(id) || in(deferred)
      || std::any_of(held.begin(), held.end(),
                     [&in](const held_plan& plan) {
                       return in(plan.loads) || in(plan.flushed_stores)
                           || in(plan.stores);
                     })
      || std::any_of(early.begin(), early.end(),
                     [&in](const msg::stores& plan) { return in(plan.jobs); });
}

void gpu_worker_state::take_early_stores() {
  while (!early.empty() && early.front().step <= *arrived) {
    const auto plan = std::move(early.front());
    early.pop_front();
    stores(plan);
  }
}

void gpu_worker_state::run_held_plans() {
  while ((!begun || ended) && run_next())
    ; // nop
}

bool gpu_worker_state::run_next() {
  if (config.remote && (!caught_up || asks_for_more()))
    return run_next_asked();
  if (held.empty())
    return false;
  auto plan = std::move(held.front());
  held.pop_front();
  run(std::move(plan));
  return true;
}

void gpu_worker_state::run(held_plan plan) {
  begun = plan.step;
  lap = lap ? *lap + 1 : plan.step;
  ended = false;
  begun_alone = false;
  while (!awaited.empty() && awaited.front() <= plan.step)
    awaited.pop_front();
  // A load cannot be waited for by its own step: it starts behind the flush.
  auto started = without(plan.flush, plan.loads);
  if (checks)
    checks->begun(*lap, started);
#ifdef KVTIDE_FAULT_NO_FLUSH_WAIT
  started.clear();
  plan.flush.clear();
#endif
  const auto& flush
    = config.rule->drop_same_step_load_flush ? started : plan.flush;
  // S4: everything that somebody may wait for is handed over first.
  auto batch = std::exchange(deferred, {});
  share_out(std::move(plan.flushed_stores), batch);
  submit(std::move(batch), {});
  awaiting_fence = !flush.empty();
  // Reference rules record the wait for a load of this step as satisfied.
  auto not_awaited = skipped;
  if (flush.size() > started.size())
    not_awaited = std::max(skipped, std::optional{plan.loads.back().id});
  if (awaiting_fence)
    self->send(device, msg::make_fence{*lap, flush, not_awaited});
  submit(std::move(plan.loads), std::move(started));
  if (!awaiting_fence)
    say_ready({});
  defer(std::move(plan.stores));
}

// -- helpers: jobs ------------------------------------------------------------

void gpu_worker_state::share_out(std::vector<job> jobs, std::vector<job>& out) {
  out.reserve(out.size() + jobs.size());
  for (auto& x : jobs) {
    if (core::writes_store(x.id, writer, writers))
      out.push_back(std::move(x));
    else
      skip(x.id, job_status::done);
  }
}

void gpu_worker_state::defer(std::vector<job> jobs) {
  if (memory != memory_state::registered)
    return fail(jobs);
  share_out(std::move(jobs), deferred);
  idle_since = clock();
}

void gpu_worker_state::hand_over_before_sleep() {
  if (!ended || !paused_behind || *begun != *paused_behind || deferred.empty())
    return;
  if (checks)
    checks->leaving();
  submit(std::exchange(deferred, {}), {});
}

void gpu_worker_state::submit(std::vector<job> jobs,
                              std::vector<job_id> after) {
  if (jobs.empty())
    return;
  if (memory != memory_state::registered)
    return fail(jobs);
  const auto moment = clock();
  if (checks)
    checks->submitted(jobs, after, computed, moment);
  for (const auto& x : jobs)
    ledger.add(x.id, moment);
  auto behind = events;
#ifdef KVTIDE_FAULT_NO_S6
  behind.clear();
#endif
  self->send(device, msg::submit_jobs{std::move(jobs), std::move(after),
                                      std::move(behind), computed});
}

void gpu_worker_state::fail(const std::vector<job>& jobs) {
  for (const auto& x : jobs) {
    ++failed_jobs;
    skip(x.id, job_status::failed);
  }
}

void gpu_worker_state::skip(job_id job, job_status status) {
  skipped = std::max(skipped, std::optional{job});
  report(job, status);
}

void gpu_worker_state::report(job_id job, job_status status, std::uint32_t row,
                              bool again) {
  if (status != job_status::drained)
    outcomes.note(job, {status, row});
  unsent.reports.push_back(
    {job, config.rank, config.incarnation, status, row, again});
}

void gpu_worker_state::send_reports() {
  if (is_alone())
    unsent.reports.clear(); // Whoever comes back asks.
  if (!unsent.reports.empty())
    self->send(scheduler, std::exchange(unsent, {}));
}

void gpu_worker_state::say_ready(fence wait_for) {
  awaiting_fence = false;
  if (checks && wait_for.kind == fence::kind_t::none)
    checks->ready(ledger);
  self->send(rank_side, step_ready{config.rank, *begun, wait_for});
}

// -- helpers: time ------------------------------------------------------------

nanoseconds_t gpu_worker_state::clock() const {
  if (config.virtual_time)
    return now;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
           self->clock().now().time_since_epoch())
    .count();
}

nanoseconds_t gpu_worker_state::idle_due() const {
  if (!ended || deferred.empty())
    return never;
  return later_by(idle_since, config.idle_delay.count());
}

nanoseconds_t gpu_worker_state::next_due() const {
  return std::min(idle_due(), late_due());
}

nanoseconds_t gpu_worker_state::late_due() const {
  const auto due = ledger.next_due();
  return looking ? later_by(std::max(*looking, due), look_patience.count())
                 : due;
}

bool gpu_worker_state::fire_due(nanoseconds_t moment) {
  const auto idle = idle_due() <= moment;
  if (idle)
    submit(std::exchange(deferred, {}), {});
  if (late_due() <= moment)
    judge_late(moment);
  return idle;
}

void gpu_worker_state::judge_late(nanoseconds_t moment) {
  if (config.virtual_time)
    return report_late(moment);
  if (looking)
    return report_late(moment - look_patience.count());
  looking = moment;
  self->send(device, msg::device_tick{moment});
}

void gpu_worker_state::report_late(nanoseconds_t moment) {
  for (const auto id : ledger.take_late(moment)) {
    if (late_jobs++ == 0)
      log().warn("rank {}: job {} is late; further ones are only counted",
                 config.rank, id);
    report(id, job_status::late);
  }
}

void gpu_worker_state::arm_timer() {
  if (config.virtual_time)
    return;
  if (const auto wait = wake_up.set(clock(), next_due()))
    self->delayed_send(self, *wait, msg::timer{});
}

void gpu_worker_state::tick_device() {
  asked = std::clamp(next_due(), now, *target);
  self->send(device, msg::device_tick{asked});
}

void gpu_worker_state::finish_tick(nanoseconds_t device_due) {
  target.reset();
  send_reports(); // What ended until then is known by then.
  if (std::exchange(tick_lost, false))
    return;
  self->send(scheduler, msg::ticked{config.rank, config.incarnation,
                                    std::min(next_due(), device_due)});
}

// -- helpers: errors ----------------------------------------------------------

void gpu_worker_state::over() {
  send_reports();
  check_rest();
}

void gpu_worker_state::check_rest() {
  if (!checks || config.virtual_time || !ended || deferred.empty())
    return;
  if (!wake_up.covers(clock(), idle_due()))
    order.breach(core::order_rule::s13,
                 "stores wait for a step that may never "
                 "come",
                 "job " + std::to_string(deferred.front().id) + " of step "
                   + std::to_string(*begun));
}

void gpu_worker_state::note_plan(core::order_rule rule, std::string_view kind,
                                 step_id step) {
  const auto text = [](const std::optional<step_id>& x) {
    return x ? std::to_string(*x) : std::string{"none"};
  };
  order.breach(rule, kind,
               "step " + std::to_string(step) + "; last planned: "
                 + text(arrived) + ", last begun: " + text(begun)
                 + (ended ? ", ended" : ", not ended"));
}

void gpu_worker_state::tell_rank(error reason) {
  self->send(rank_side, rank_failed{config.rank, std::move(reason)});
}

void gpu_worker_state::refuse_registration(error reason) {
  self->send(rank_side,
             kv_registered{config.rank, 0, 0, std::move(reason), {}});
}

// -- behavior -----------------------------------------------------------------

gpu_worker_actor::behavior_type
gpu_worker(gpu_worker_actor::stateful_pointer<gpu_worker_state> self,
           gpu_worker_config config, device_actor target,
           scheduler_worker_port scheduler, rank_side_actor rank_side) {
  auto& st = self->state;
  st.self = self;
  st.ledger = core::transfer_ledger{config.job_deadline.count()};
  st.config = std::move(config);
  st.order = make_order_log("rank " + std::to_string(st.config.rank),
                            st.config.order_checks, st.config.on_breach);
  if (st.config.order_checks != order_checks::off)
    st.checks.emplace(st.order, st.config.idle_delay.count());
  st.device = std::move(target);
  st.scheduler = std::move(scheduler);
  st.rank_side = std::move(rank_side);
  st.now = st.config.start_time;
  self->monitor(st.device);
  if (st.scheduler)
    self->monitor(st.scheduler);
  if (st.config.remote)
    self->set_default_handler(caf::drop); // Peers may say anything.
  self->set_down_handler(
    [&st](caf::down_msg& down) { st.on_down(down), st.over(); });
  // CAF tries one after the other: what comes in every step is first.
  return {
    [&st](const msg::begin_step& x) {
      if (st.is_from_scheduler())
        st.begin_step(x), st.over();
    },
    [&st](const msg::stores& x) {
      if (st.is_from_scheduler())
        st.stores(x), st.over();
    },
    [&st](const msg::await_step& x) { st.await_step(x), st.over(); },
    [&st](const msg::end_step& x) { st.end_step(x), st.over(); },
    [&st](const msg::copies_done& x) { st.copies_done(x), st.over(); },
    [&st](const msg::fence_made& x) { st.fence_made(x), st.over(); },
    [&st](const msg::device_ticked& x) { st.device_ticked(x), st.over(); },
    [&st](const msg::timer&) { st.timer(), st.over(); },
    [&st](const msg::tick& x) {
      if (st.is_from_scheduler())
        st.tick(x), st.over();
    },
    [&st](const msg::pause& x) {
      if (st.is_from_scheduler())
        st.pause(x), st.over();
    },
    [&st](const msg::report_again& x) {
      if (st.is_from_scheduler())
        st.report_again(x), st.over();
    },
    [&st](const msg::attach& x) { st.attach(x), st.over(); },
    [&st](const msg::seat& x) { st.seat(x), st.over(); },
    [&st](const msg::register_kv& x) { st.register_kv(x), st.over(); },
    [&st](const msg::unregister_kv&) { st.unregister_kv(), st.over(); },
    [&st](const msg::memory_registered& x) {
      st.memory_registered(x), st.over();
    },
    [&st](const msg::memory_unregistered&) {
      st.memory_unregistered(), st.over();
    },
    [&st](const msg::get_rank_stats&) { st.get_stats(), st.over(); },
    [&st](const msg::device_breach& x) { st.order.count(x.rule); },
  };
}

} // namespace kvtide
