// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/options.hpp"

#include "actors/alarm.hpp"
#include "actors/request_row.hpp"
#include "actors/scheduler_items.hpp"
#include "core/fresh_blocks.hpp"
#include "core/job_table.hpp"
#include "core/kept_parts.hpp"
#include "core/layout.hpp"
#include "core/order_log.hpp"
#include "core/reuse_watch.hpp"
#include "core/rules.hpp"
#include "core/scheduler_checks.hpp"
#include "core/short_list.hpp"
#include "core/sliding_index.hpp"
#include "core/ticket_order.hpp"
#include "messages/cache_manager.hpp"
#include "messages/engine.hpp"
#include "messages/gpu_worker.hpp"
#include "messages/scheduler.hpp"

#include <caf/actor_cast.hpp>
#include <caf/make_message.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <tsl/robin_map.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kvtide {

/// Startup parameters of the scheduler.
struct scheduler_config {
  std::shared_ptr<const core::layout> shape;
  options opts;

  /// Hears of every breach of the order; see core/order_log.hpp.
  std::function<void(const core::order_breach&)> on_breach;

  /// Which life of the scheduler this is; 0 if it has no ranks in other
  /// processes.
  std::uint64_t epoch = 0;
};

// -- the actor ----------------------------------------------------------------

/// State of the scheduler. Touched by one thread at a time, as CAF runs one
/// message of an actor after the other. Never waits: an item that needs other
/// actors is a phase, and all else stays in the queue meanwhile.
struct scheduler_state {
  static inline const char* name = "scheduler";

  struct rank_seat {
    /// Null as soon as it is known to be down.
    gpu_worker_actor worker;
    /// Null if it is known to be down, or ends with the worker.
    caf::actor_addr device;
    incarnation_id incarnation = 0;
    /// Workers that said they are ready, and which of them is the present one.
    std::uint64_t joins = 0;
    std::uint64_t join = 0;
    /// The last time that the present one said so.
    std::uint64_t last_join = 0;
    std::uint64_t slots = 0;
    bool joined = false;
    /// Until the loss takes its turn in the queue.
    bool alive = false;
    /// Its memory is there.
    bool registered = false;

    // Only of ranks in other processes.

    /// Nobody knows how its copies go on when it is lost.
    bool remote = false;
    /// Who said last that it is ready, even if that waits in the queue: the
    /// only one who is heard.
    caf::actor_addr speaker;
    /// The life that said so.
    incarnation_id newest = 0;
    /// The last step whose plan has arrived there.
    step_id taken = 0;
    /// What the next life says of its host pool before it is ready.
    struct {
      incarnation_id incarnation = 0;
      caf::actor_addr from;
      core::kept_parts chunks;
    } found;
  };

  scheduler_state() = default;
  scheduler_state(const scheduler_state&) = delete;
  scheduler_state& operator=(const scheduler_state&) = delete;

  /// Takes the requests along: they hold the scheduler, and it holds them.
  ~scheduler_state();

  // -- the queue (scheduler.cpp) ----------------------------------------------

  /// Starts `x` at once if nothing is in progress.
  template <class Item>
  void push(Item x) {
    push_all(std::span{&x, 1});
  }
  /// The same for items that follow each other.
  template <class Items>
  void push_all(Items&& items) {
    const auto starts = !pumping;
    pumping = true;
    for (auto& x : items)
      if (starts && at_rest()) {
        turn += 1;
        start(x);
      } else {
        queue.push_back(std::move(x)); // Its turn comes.
      }
    pumping = !starts;
    pump();
  }
  [[nodiscard]] bool at_rest() const {
    return queue.empty() && std::holds_alternative<std::monostate>(phase);
  }
  void push_front(std::vector<scheduler_item> items);
  void pump();
  /// Ends the item in progress.
  void done();
  /// Checks what must hold when nothing is left to do but to wait for a step
  /// (S13).
  /// @pre a finish waits
  void check_rest();
  /// Takes a call of the engine into the queue.
  template <class Call>
  void take_call(Call& x) {
    if (!calls.follows(x.ticket))
      out_of_order_ticket("a call", x.ticket, calls.last());
    push(std::move(x));
  }
  template <class Answer>
  void answer(Answer x) {
    if (!answers.follows(x.ticket))
      out_of_order_ticket("an answer", x.ticket, answers.last());
    self->send(engine, std::move(x));
  }
  void out_of_order_ticket(const char* what, ticket_id ticket, ticket_id last);
  /// The phase that an answer belongs to, or null if it is none of ours (S1).
  template <class Phase>
  Phase* in_phase(msg::turn_id of, const char* answer) {
    auto* out = std::get_if<Phase>(&phase);
    if (out != nullptr && of == turn)
      return out;
    unasked(of, answer);
    return nullptr;
  }
  /// An answer that no question of this turn waits for; it is ignored.
  void unasked(msg::turn_id of, const char* answer);

  // -- engine's calls (scheduler_calls.cpp) -----------------------------------

  void start(msg::add& x);
  void start(msg::extend& x);
  void start(msg::lookup& x);
  void start(msg::decline& x);
  void start(msg::allocate& x);
  void start(msg::outputs& x);
  void start(msg::truncate& x);
  void start(msg::finish& x);
  /// @returns false if the numbers are out of range; nothing is taken then
  bool take_ending(request_row& row, const finish_call& call);
  void await_plan(request_id id, request_row& row);
  void start(msg::reset& x);
  /// @param kept chunks that the host pool of a rank's next life has
  /// @returns the jobs that were in flight
  std::vector<job_id>
  forget_everything(std::optional<std::vector<core::kept_chunk>> kept
                    = std::nullopt);
  void start(msg::get_stats& x);
  void start(msg::get_snapshot& x);
  void start(msg::take_events& x);
  void start(msg::shutdown& x);
  void start(msg::explain& x);

  void on(msg::search_result& x);
  void on(msg::load_offer& x);
  void on(msg::load_prepared& x);
  void on(msg::cache_events& x);
  void on(const msg::pool_report& x);
  void on(msg::explained& x);

  void answer_lookup(lookup_phase& lookup);
  /// A search for this request that touches and holds nothing.
  [[nodiscard]] core::search_query
  query_of(const request_row& row, token_count local, token_count known) const;

  // -- a pause of the engine (scheduler_sleep.cpp) ----------------------------

  void start(msg::sleep& x);
  void start(fall_asleep& x);
  void start(msg::wake& x);
  /// Answers `sleep` if it is time.
  void maybe_slept();
  void answer_sleep();
  /// Nothing is in flight, and nothing waits to be planned.
  [[nodiscard]] bool has_no_jobs() const;

  // -- a step (scheduler_step.cpp) --------------------------------------------

  void start(msg::step& x);
  void start(idle_plan& x);

  void on(msg::store_offer& x);
  void on(msg::stores_prepared& x);

  void ignore_unusable(std::vector<request_id>& preempted);
  void ignore_unusable(std::vector<finish_call>& tails);
  /// @returns whether this step named it before
  [[nodiscard]] bool is_named_again(request_id id, request_row& row);
  void take_progress(const std::vector<step_row>& said);
  [[nodiscard]] bool usable(const step_row& row, request_row* known);
  [[nodiscard]] std::vector<request_id>
  take_tails(const std::vector<finish_call>& tails);
  void take_tables(const std::vector<request_id>& preempted);
  void take_blocks(const step_row& row, request_row& known);
  void clear_stale_blocks();
  void expire_promises();
  [[nodiscard]] std::set<job_id>
  find_flushes(const std::vector<request_id>& preempted) const;
  void invite_all(step_phase& step, const std::vector<request_id>& preempted);
  void invite_finished(step_phase& step);
  void invite(step_phase& step, request_id id, request_row& row);
  void invite_refused(step_phase& step);
  void move_keys(step_phase& step, const request_row& row);
  void ask_participants(step_phase& step);
  [[nodiscard]] bool completes_one_chunk(const request_row& row,
                                         token_count wanted) const;
  void take_answer(step_phase::participant& who, core::store_offer& offer,
                   core::store_plan plan) const;
  void leave_out_given_up(const request_row& row, core::store_plan& plan) const;
  void ask_pool(step_phase& step);
  void settle_offer(step_phase& step, step_phase::participant& who,
                    std::span<core::store_candidate> candidates,
                    const core::store_grant& grant);
  void make_store(step_phase& step, step_phase::participant& who,
                  std::span<core::store_candidate> candidates,
                  const core::store_grant& grant);
  void end_step(step_phase& step);
  void send_begin_step(const step_phase& step, std::vector<job> flushed_stores);
  [[nodiscard]] bool stores_paused();

  // -- actors that die (scheduler_deaths.cpp) ---------------------------------

  void on_down(const caf::actor_addr& who);
  void lose_cache();
  void start(cache_gone& x);
  void start_cache();
  /// Answers in its place what the item in progress asked the cache manager.
  void answer_for_cache();
  void lose_request(request_id id, request_row& row);
  /// Answers in its place what the item in progress asked a request.
  void answer_for_request(request_id id);

  // -- ranks that come and go (scheduler_ranks.cpp) ---------------------------

  void start(rank_joined& x);
  void start(msg::worker_left& x);
  void start(rank_gone& x);
  void start(device_gone& x);
  void lose_worker(rank_id rank);
  void lose_device(const caf::actor_addr& who);
  /// Ends loads of which no rank has heard.
  /// @returns which they were, and adds the reports that end them to `out`
  std::set<job_id> fail_unheard_loads(std::vector<scheduler_item>& out);
  void open_pool_if_complete();

  // -- ranks in other processes (scheduler_remote.cpp) ------------------------

  void on(msg::worker_ready& x);
  void on(msg::worker_left& x);
  void on(const msg::steps_taken& x);
  void on(const msg::chunks_kept& x);
  /// @returns whether the sender is heard from now on
  bool take_speaker(const msg::worker_ready& x, const gpu_worker_actor& worker);
  /// Tells a worker of another process that plans come from here on, or why
  /// they never will.
  void answer_worker(const rank_joined& to, std::string refusal);
  /// Does not take a worker that is ready (AGG-04).
  void refuse(const rank_joined& who, std::string why);
  /// What is of an earlier life or connection is counted, to be ignored.
  [[nodiscard]] bool comes_late(rank_id rank, incarnation_id incarnation);
  [[nodiscard]] bool is_cut_off(rank_id rank) const;
  /// It reads its plans too slowly (CNT-02).
  [[nodiscard]] bool lags(const rank_seat& seat) const;
  /// Which copies of this rank may still run?
  [[nodiscard]] std::vector<job_id> late_jobs(rank_id rank) const;
  /// Another life has its place, and other memory: they touch nothing of it.
  void end_copies_of(rank_id rank);

  // -- how jobs end (scheduler_jobs.cpp) --------------------------------------

  void start(msg::transfer_done& x);
  void start(presumed_report& x);
  void take_report(const msg::transfer_done& x);

  void on(msg::transfers_done& x);
  void on(msg::rolled_back& x);

  /// What the pool hears when a job has ended.
  [[nodiscard]] static msg::complete_job
  completion_of(const core::tracked_job& entry);
  void settle(core::tracked_job& entry);
  void settle_store(core::tracked_job& entry);
  void settle_load(core::tracked_job& entry);
  /// The last late copy of a settled job has ended.
  void end_late_copies(job_id id);
  void finish_copies(core::tracked_job& entry);
  void fail_load(core::tracked_job& entry);
  void announce_load_end(core::tracked_job& entry);
  void leave_request(const core::tracked_job& entry);
  void roll_back(request_id id, group_id group, std::size_t chunk);
  void unwatch(const core::tracked_job& entry);
  void erase_job(job_id id);
  /// The outcome of a job changes the pool and its request (S9, S11).
  void take_effect(job_id id, bool ok);

  // -- time (scheduler_time.cpp) ----------------------------------------------

  void start(msg::advance& x);
  void start(advance_on& x);

  void on(const msg::ticked& x);
  void on_timer();

  void tick_ranks(advance_phase& tick);
  /// This rank has ticked, or never will.
  void rank_ticked(advance_phase& tick, rank_id rank);
  void end_tick(advance_phase& tick);
  /// Answers `shutdown` and `sleep` if it is time.
  void maybe_stopped();
  void arm_timer();
  /// From now on it is noticed if a rank stays silent about a job.
  void expect_reports(core::tracked_job& entry);
  /// Asks ranks for reports that are long overdue: they may be lost.
  void ask_for_reports();
  [[nodiscard]] bool is_orphaned(job_id id, rank_id rank) const;
  [[nodiscard]] nanoseconds_t clock_now() const;
  [[nodiscard]] nanoseconds_t own_due() const;

  // -- helpers (scheduler.cpp) ------------------------------------------------

  request_row* find(request_id id) {
    const auto i = rows.find(id);
    return i != rows.end() ? i->second.get() : nullptr;
  }
  /// Every rank has joined, lives, and has its memory.
  [[nodiscard]] bool ranks_complete() const;
  void fail(ticket_id ticket, request_id id, error reason);
  void fail(ticket_id ticket, request_id id, ec code, std::string text) {
    fail(ticket, id, {code, std::move(text)});
  }
  /// Ignores part of a call (R10).
  void wrong_call(std::string_view kind, const std::string& detail = {}) {
    order.breach(core::order_rule::call, kind, detail);
  }
  void note_fresh(const std::vector<std::vector<block_id>>& blocks);
  void take_fresh(block_id block);
  /// The latest progress lets it have something to store.
  [[nodiscard]] bool crosses_boundary(const request_row& row) const;
  void empty_tables(request_id id, request_row& row);
  void release_promise(request_row& row);
  void refresh_boundary(request_row& row);
  void drop_if_over(request_id id);
  void drop(request_id id);
  /// Blocks of sliding groups, or those of the others.
  enum class blocks_of : bool { full, sliding };
  template <class Function>
  void for_each_block(const job& work, blocks_of which, Function fun) const {
    for (const auto& row : work.rows)
      if (shape->groups[row.key.group].sliding()
          == (which == blocks_of::sliding))
        for (auto block : row.blocks)
          if (block != no_block)
            fun(block);
  }
  void watch_blocks(const core::tracked_job& entry, blocks_of which);
  [[nodiscard]] core::per_group<core::key_view>
  last_keys(const request_row* row, job_id ending) const;
  /// Without effect while there is no cache manager: a new one knows nothing of
  /// what came before it.
  template <class T>
  void tell_cache(T x) {
    send_completions();
    if (cache)
      self->send(cache, std::move(x));
  }
  /// Waits for others, until something else is to be said to the cache manager
  /// or the scheduler comes to rest.
  void tell_cache(msg::complete_job x) {
    completions.jobs.push_back(std::move(x));
  }
  void send_completions() {
    if (completions.jobs.empty())
      return;
    auto out = std::exchange(completions, {});
    if (cache)
      self->send(cache, std::move(out));
  }
  /// For what is answered. To be called last: the answer may end the phase.
  template <class T>
  void ask_cache(T x) {
    send_completions();
    cache_asked = true;
    cache_losses_in_a_row = 0;
    if (cache)
      self->send(cache, std::move(x));
    else
      answer_for_cache();
  }
  /// One message object for all ranks: what they read is identical (S10).
  template <class T>
  void broadcast(T x) {
    const auto message = caf::make_message(std::move(x));
    for (const auto& seat : ranks)
      if (seat.worker)
        caf::actor_cast<caf::strong_actor_ptr>(seat.worker)
          ->enqueue(self->ctrl(), caf::make_message_id(), message,
                    self->context());
  }

  // -- members ----------------------------------------------------------------

  scheduler_actor::pointer self = nullptr;
  std::shared_ptr<const core::layout> shape;
  options opts;
  /// See `scheduler_config`.
  std::uint64_t epoch = 0;
  const core::rules* rule = nullptr;
  /// Null from its death to the turn of `cache_gone`, and from then on until
  /// the next reset if it was given up.
  cache_manager_actor cache;
  /// The item in progress waits for it.
  bool cache_asked = false;
  std::uint32_t cache_losses_in_a_row = 0;
  /// Not sent yet.
  msg::complete_jobs completions;
  engine_actor engine;

  std::deque<scheduler_item> queue;
  scheduler_phase phase;
  /// Of the item in progress.
  msg::turn_id turn = 0;
  bool pumping = false;

  /// Rows lie side by side: each step walks over them. So do jobs.
  std::pmr::unsynchronized_pool_resource row_memory;
  tsl::robin_map<request_id, std::shared_ptr<request_row>> rows;
  core::job_table jobs{1, &row_memory};
  core::reuse_watch watch;
  core::sliding_index sliding;
  std::vector<rank_seat> ranks;
  /// Devices that outlive their workers, and what they may still copy.
  struct orphan {
    caf::actor_addr device;
    device_gone copies;
  };
  std::vector<orphan> orphans;

  /// The rows of the step at hand; kept for their room.
  struct {
    using row = std::pair<const step_row*, request_row*>;
    /// Those that begin, resume, or have new blocks.
    std::vector<row> changed;
    /// Those that may have something to store.
    std::vector<row> crossing;
  } progress;
  /// Lists of the last step, empty; kept for their room, too.
  std::vector<step_phase::participant> spare_participants;
  std::vector<core::store_offer> spare_offers;

  /// The last step; zero before the first.
  step_id last_step = 0;
  bool stepped = false;
  /// Blocks handed out since the last step ended.
  core::fresh_blocks fresh;
  /// Loads that the next step delivers.
  std::vector<job> waiting_loads;
  /// Flushed by the next step: what a reset or a truncate left.
  std::set<job_id> leftover_flush;
  /// Finished since the last step, in call order.
  std::vector<request_id> finishing;
  /// Refused requests in order of first refusal (R5).
  std::vector<request_id> refused;
  /// Slots became free or idle since refused requests were last asked.
  bool slots_gained = false;
  /// The engine was told of the overload.
  bool overloaded = false;

  promise_id last_promise = 0;
  struct open_promise {
    step_id step = 0;
    request_id request = 0;
    promise_id promise = 0;
  };
  /// In order of age.
  std::deque<open_promise> promises;

  /// Simulated time; real time is asked from the actor's clock.
  nanoseconds_t now = 0;
  /// When `finishing` is planned without a step (S13).
  nanoseconds_t idle_due = never;
  /// When silent ranks are asked; `never` only while no job is in flight.
  nanoseconds_t reports_due = never;
  alarm wake_up;

  struct stop_call {
    ticket_id ticket = 0;
    nanoseconds_t deadline = 0;
  };
  std::optional<stop_call> stopping;
  /// Between `sleep` and `wake`.
  bool asleep = false;
  /// A `sleep` that has no answer yet.
  std::optional<stop_call> sleeping;

  /// What every rank has room for; zero before all have joined.
  std::uint64_t pool_slots = 0;

  stats counters;

  core::order_log order;
  /// Without value if `options::order_checks` is off.
  std::optional<core::scheduler_checks> checks;
  core::ticket_order calls;
  /// Without those of `shutdown` and `sleep`, which come when they can.
  core::ticket_order answers;
};

/// Decides what is loaded, stored and flushed (S10). Spawns one request actor
/// per request. If a worker dies, its jobs fail, the engine is told, stores
/// pause and lookups find nothing until a worker with its rank joins again. A
/// worker of another process may only be out of reach: its copies are over when
/// it is back and says so, or when a later life has its place. If
/// a request actor dies, its request goes on without the cache. If the cache
/// manager dies, another one is started, empty as after a reset; one that dies
/// again and again before anything is asked of it is given up until the next
/// reset. It ends with the scheduler.
/// @param config Validated by the caller.
scheduler_actor::behavior_type
scheduler(scheduler_actor::stateful_pointer<scheduler_state> self,
          scheduler_config config, cache_manager_actor cache,
          engine_actor engine);

} // namespace kvtide
