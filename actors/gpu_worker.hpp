// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/error.hpp"
#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"
#include "kvtide/options.hpp"

#include "actors/alarm.hpp"
#include "core/job_path.hpp"
#include "core/order_log.hpp"
#include "core/outcome_log.hpp"
#include "core/rules.hpp"
#include "core/transfer_ledger.hpp"
#include "core/worker_checks.hpp"
#include "messages/device.hpp"
#include "messages/gpu_worker.hpp"
#include "messages/join.hpp"
#include "messages/rank_side.hpp"
#include "messages/scheduler.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvtide {

/// Startup parameters of a worker.
struct gpu_worker_config {
  rank_id rank = 0;

  /// Tells this life of the rank from earlier ones; goes with every report. If
  /// `remote`, each `attach` says it.
  incarnation_id incarnation = 1;

  /// The scheduler is in another process: it comes by `attach`, may be lost and
  /// come again, and steps go on meanwhile.
  bool remote = false;

  /// Required; outlives the actor.
  const core::rules* rule = &core::safe_rules;

  /// See `options::job_deadline`.
  std::chrono::nanoseconds job_deadline = std::chrono::seconds{10};

  /// See `options::idle_delay`.
  std::chrono::nanoseconds idle_delay = std::chrono::milliseconds{5};

  /// Time moves by `tick` only, and no timer is armed.
  bool virtual_time = false;

  /// Simulated time at the start.
  nanoseconds_t start_time = 0;

  /// See `options::delivery`.
  plan_delivery delivery = plan_delivery::direct;

  /// See `options::model_fingerprint`.
  std::string model_fingerprint;

  /// See `options::order_checks`.
  kvtide::order_checks order_checks = kvtide::order_checks::count;

  /// Hears of every breach of the order; see core/order_log.hpp.
  std::function<void(const core::order_breach&)> on_breach;
};

/// What `opts` say of one life of a rank.
[[nodiscard]] gpu_worker_config
worker_config_of(const options& opts, rank_id rank, incarnation_id incarnation);

/// How long a device may take to say what has ended. One that is silent for
/// longer, in a call of its driver that does not return say, does not keep jobs
/// from being late.
inline constexpr std::chrono::nanoseconds look_patience
  = std::chrono::milliseconds{100};

/// A worker of another process says how far it has come every so many steps.
inline constexpr step_id steps_per_sign = 8;

/// State of a worker: what it holds back, what its device is busy with, and
/// how far its rank is. Touched by one thread at a time.
struct gpu_worker_state {
  static inline const char* name = "gpu-worker";

  /// A plan that waits for the end of the step before it (S6).
  struct held_plan {
    step_id step = 0;
    std::vector<job> loads;
    std::vector<job> flushed_stores;
    std::vector<job_id> flush;
    std::vector<job> stores;
  };

  // -- message handlers -------------------------------------------------------

  void begin_step(const msg::begin_step& plan);

  void stores(const msg::stores& plan);

  void pause(const msg::pause& x);

  void tick(const msg::tick& req);

  void report_again(const msg::report_again& req);

  void attach(const msg::attach& x);

  void seat(const msg::seat& x);

  void register_kv(const msg::register_kv& req);

  void unregister_kv();

  void await_step(const msg::await_step& req);

  void end_step(const msg::end_step& req);

  void get_stats();

  void memory_registered(const msg::memory_registered& answer);

  void memory_unregistered();

  void copies_done(const msg::copies_done& x);

  void fence_made(const msg::fence_made& answer);

  void device_ticked(const msg::device_ticked& answer);

  void timer();

  /// False for a message of a connection that is over: it is counted.
  [[nodiscard]] bool is_from_scheduler();

  /// By the one that this worker has said `worker_ready` to.
  [[nodiscard]] bool is_said_by_scheduler() const;

  void note_late();

  void on_down(const caf::down_msg& down);

  /// No copy runs any more: what was in flight has failed, and this rank ends.
  /// @param why a sentence
  void device_down(const std::string& why);

  /// Nobody decides any more: what runs may end, and this rank with it.
  void scheduler_down();

  /// Once the scheduler is gone.
  void quit_if_over();

  // -- helpers: a scheduler in another process --------------------------------

  /// Nobody plans for this rank now: its steps begin without a plan.
  [[nodiscard]] bool is_alone() const {
    return config.remote && !takes_part;
  }

  /// `worker_ready` was said, and not answered yet.
  [[nodiscard]] bool is_joining() const {
    return config.remote && introduced && !takes_part;
  }

  /// It was planned before this rank took part.
  [[nodiscard]] bool is_missed(step_id step) const {
    return step < first_planned;
  }

  /// Says so to the rank side, once per loss.
  void scheduler_lost();

  void leave_scheduler();

  /// What was not handed over fails, what runs is late: so the scheduler has it
  /// as well, or it is gone. Steps go on.
  void go_on_alone();

  /// Lets the scheduler plan for this rank, as soon as it may.
  void say_worker_ready();

  /// In parts, so that none is long (CNT-02).
  void say_kept();

  /// The rank side wants to begin a step.
  void note_awaited(step_id step);

  /// It is known now whether plans come for the steps that the rank side wants
  /// to begin.
  void take_awaited();

  /// As `run_next`, until the rank side has come to the steps with plans.
  /// @returns false if there is nothing to do
  bool run_next_asked();

  /// A step before all that have plans.
  [[nodiscard]] bool asks_for_more() const {
    return !awaited.empty() && !held.empty()
        && awaited.front() < held.front().step;
  }

  /// The plan of this step is here or to come, and was not dropped.
  /// @pre it is planned for this rank
  [[nodiscard]] bool will_come(step_id step) const;

  /// Begins a step of which no plan is known: it waits for every copy (S5).
  void begin_alone(step_id step);

  /// Plans of steps that the rank side skips.
  void drop_held_before(step_id step);

  void drop_held();

  /// Its jobs fail.
  void drop(const held_plan& plan);

  /// Without a scheduler nobody moves simulated time: the device goes on to the
  /// end of its copies.
  void let_copies_end();

  void say_how_far();

  // -- helpers: plans ---------------------------------------------------------

  [[nodiscard]] bool in_order(const msg::begin_step& plan) const;

  /// @pre `in_order(plan)`
  void take(const msg::begin_step& plan);

  /// A step that begins with `plan` is to wait for this job.
  [[nodiscard]] bool must_await(job_id id, const held_plan& plan);

  /// Takes stores of the last step whose plan arrived. There may be several
  /// lots: finished requests are planned without a further step (S13).
  void take(const msg::stores& plan);

  /// Takes stores that came before their plan.
  void take_early_stores();

  /// The jobs that were not here before (S4); counts the others.
  [[nodiscard]] std::vector<job> take_jobs(const std::vector<job>& jobs);

  /// Reports jobs of a message that came in the wrong order as failed, except
  /// those that will have a report of their own.
  void refuse(const std::vector<job>& jobs);

  /// It waits here, or is with the device, and will be reported.
  [[nodiscard]] bool is_here(job_id id) const;

  void run_held_plans();

  /// The end of the step before is enqueued.
  /// @returns false if there is nothing to run
  bool run_next();

  void run(held_plan plan);

  // -- helpers: jobs ----------------------------------------------------------

  /// Appends stores that this rank writes to `out`, reports the others done.
  void share_out(std::vector<job> jobs, std::vector<job>& out);

  void defer(std::vector<job> jobs);

  /// Submits what waits for a step that will not come while the engine sleeps.
  void hand_over_before_sleep();

  /// Hands jobs over, behind `after` and the last enqueued compute (S5, S6).
  void submit(std::vector<job> jobs, std::vector<job_id> after);

  void fail(const std::vector<job>& jobs);

  /// Ends a job that the device never hears of.
  void skip(job_id job, job_status status);

  void copy_ended(const msg::copy_done& x);

  /// Goes out with `send_reports`.
  void report(job_id job, job_status status, std::uint32_t row = 0,
              bool again = false);

  void send_reports();

  void say_ready(fence wait_for);

  /// What the device and the order checker call the last step whose plan
  /// arrived.
  [[nodiscard]] step_id lap_of_arrived() const {
    return lap ? *lap + held.size() : *arrived;
  }

  // -- helpers: time ----------------------------------------------------------

  [[nodiscard]] nanoseconds_t clock() const;

  /// When deferred stores stop waiting for a next step (S13).
  [[nodiscard]] nanoseconds_t idle_due() const;

  [[nodiscard]] nanoseconds_t next_due() const;

  /// When jobs that miss their deadline are next looked at. What the device was
  /// asked and has not answered waits no longer than `look_patience` (G1).
  [[nodiscard]] nanoseconds_t late_due() const;

  /// Does what is due by `moment`.
  /// @returns true if jobs went to the device.
  bool fire_due(nanoseconds_t moment);

  /// The device may know what nobody was woken for, so it is asked before a job
  /// is called late (G1). In simulated time it has just been asked.
  /// @pre `late_due() <= moment`
  void judge_late(nanoseconds_t moment);

  void report_late(nanoseconds_t moment);

  void arm_timer();

  /// Moves the device's time to the next moment at which something is due here.
  void tick_device();

  void finish_tick(nanoseconds_t device_due);

  // -- helpers: errors --------------------------------------------------------

  /// Ends every message: sends what it had to report.
  void over();

  /// Checks what must hold between two messages (S13).
  void check_rest();

  /// A plan, or stores, that cannot come now.
  void note_plan(core::order_rule rule, std::string_view kind, step_id step);

  void tell_rank(error reason);

  void refuse_registration(error reason);

  // -- members ----------------------------------------------------------------

  gpu_worker_actor::pointer self = nullptr;
  gpu_worker_config config;
  device_actor device;
  /// Null if it is in another process and cannot be reached.
  scheduler_worker_port scheduler;
  rank_side_actor rank_side;

  enum class memory_state : std::uint8_t {
    none,
    registering,
    registered,
    unregistering,
  };

  memory_state memory = memory_state::none;
  bool scheduler_gone = false;
  std::uint64_t slots = 0;
  /// What the pool had before this process and still has.
  std::vector<msg::kept_chunk> kept_chunks;
  /// From the registration, see `kv_memory::writer`.
  std::uint32_t writer = 0;
  std::uint32_t writers = 1;

  /// The last step whose plan arrived.
  std::optional<step_id> arrived;
  core::job_path path;
  std::deque<held_plan> held;
  /// Stores ahead of their plan, which the engine carries on another path.
  std::deque<msg::stores> early;

  /// The last step whose plan was run, or that began without one.
  std::optional<step_id> begun;
  /// The same as the device and the order checker count it: without gaps and
  /// never back, although the steps of another scheduler have other numbers.
  std::optional<step_id> lap;
  /// `step_ready` of `begun` is owed.
  bool awaiting_fence = false;
  /// Compute of `begun` is enqueued.
  bool ended = false;
  /// The last step whose compute is enqueued, counted as `lap`, and its events.
  std::optional<step_id> computed;
  compute_events events;

  /// Planned in a step, to be submitted at the start of the next (S3).
  std::vector<job> deferred;
  /// The engine sleeps, or slept, behind this step.
  std::optional<step_id> paused_behind;
  /// The later of the end of `begun` and the arrival of its stores.
  nanoseconds_t idle_since = 0;
  /// Set before the first message.
  core::transfer_ledger ledger{0};
  /// The highest job that was ended without the device.
  std::optional<job_id> skipped;
  /// What the present message led to so far.
  msg::transfers_done unsent;
  /// What was reported, in case a report is lost.
  core::outcome_log outcomes;

  alarm wake_up;
  /// Real time: when the device was asked what has ended; no answer yet.
  std::optional<nanoseconds_t> looking;

  /// Simulated time; unused with a real clock.
  nanoseconds_t now = 0;
  /// Where `now` is going while a `tick` is being worked on.
  std::optional<nanoseconds_t> target;
  /// Where the device was last asked to go.
  nanoseconds_t asked = 0;

  // Only if `config.remote`:
  /// `worker_ready` was said on this connection.
  bool introduced = false;
  /// How often it was said.
  std::uint32_t calls = 0;
  /// The scheduler has answered that it plans for this rank.
  bool takes_part = false;
  /// Of the scheduler that was there last.
  std::optional<std::uint64_t> epoch;
  /// What is in flight was planned by an earlier scheduler, or for an earlier
  /// life: the same job ids may come again.
  bool copies_of_before = false;
  /// What the rank side asked while it was not known whether plans come.
  std::vector<msg::await_step> unanswered;
  /// Steps that the rank side wants to begin, in its order.
  std::deque<step_id> awaited;
  /// See `seat`.
  step_id first_planned = 0;
  /// The rank side has come to the steps with plans: from here on they run
  /// ahead of it.
  bool caught_up = false;
  /// `begun` began without a plan, and the scheduler may still send it.
  bool begun_alone = false;
  /// Nobody waits for the end of the `tick` that is being worked on.
  bool tick_lost = false;
  std::uint64_t late_messages = 0;

  std::uint64_t late_jobs = 0;
  std::uint64_t failed_jobs = 0;
  std::uint64_t copied_bytes = 0;
  std::chrono::nanoseconds copy_time{0};

  /// Counts for the device as well.
  core::order_log order;
  /// Without value if `options::order_checks` is off.
  std::optional<core::worker_checks> checks;
};

/// Runs the plans of one rank: decides when a job goes to the device, never
/// which (S10).
/// @param target if it goes down, its jobs are reported failed, a step that
///               waits for a fence goes on, and the worker quits.
/// @param scheduler if it goes down, nothing is handed over any more, and the
///                  worker quits when the copies that are running have ended.
///                  With `config.remote` it may be null, and the worker stays;
///                  see gpu_worker_remote.cpp.
gpu_worker_actor::behavior_type
gpu_worker(gpu_worker_actor::stateful_pointer<gpu_worker_state> self,
           gpu_worker_config config, device_actor target,
           scheduler_worker_port scheduler, rank_side_actor rank_side);

} // namespace kvtide
