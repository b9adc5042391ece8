// SPDX-License-Identifier: Apache-2.0

/// @file
/// A whole runtime whose every next event is somebody's choice.

#pragma once

#include "actors/cache_manager.hpp"
#include "actors/device.hpp"
#include "actors/gpu_worker.hpp"
#include "actors/scheduler.hpp"
#include "tests/explore/chooser.hpp"
#include "tests/explore/engine_model.hpp"
#include "tests/explore/findings.hpp"
#include "tests/explore/history.hpp"
#include "tests/explore/rank_part.hpp"
#include "tests/explore/scenario.hpp"
#include "tests/explore/shadow.hpp"
#include "tests/explore/text_book.hpp"
#include "tests/support/actor_world.hpp"

#include <caf/actor.hpp>
#include <caf/event_based_actor.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::explore {

/// Called before each event; may do something in between.
using interference = std::function<void(class world&, std::size_t event)>;

/// Real actors (scheduler, requests, cache manager, workers, devices) and real
/// memory, with the CUDA engine that of a machine without a GPU: one world at a
/// time then. Between the scheduler and each worker there is a link in either
/// direction whose deliveries are choices, as between two nodes. The engine,
/// the compute of each rank and the copies are models that go on when they are
/// chosen.
class world {
public:
  world(const scenario& what, chooser& next, bool traced);

  world(const world&) = delete;

  world& operator=(const world&) = delete;

  ~world();

  /// What the machine without a GPU still has that somebody made, once no world
  /// is there any more: one line each.
  [[nodiscard]] static std::vector<std::string> leaks();

  /// Runs the scenario to its end, then looks at what is left.
  void run(const interference& before = {});

  // -- what came of it --------------------------------------------------------

  [[nodiscard]] const std::optional<finding>& found() const {
    return findings_.first();
  }

  [[nodiscard]] const history& past() const noexcept {
    return past_;
  }

  // -- for the check of S1 ----------------------------------------------------

  [[nodiscard]] const text_book& texts() const noexcept {
    return texts_;
  }

  /// All plans that were sent to a rank, in order.
  [[nodiscard]] const std::vector<std::string>& plans(rank_id rank) const {
    return ranks_[rank].plans;
  }

  [[nodiscard]] bool has_died(rank_id rank) const {
    return !ranks_[rank].alive || ranks_[rank].incarnation > 1
        || cut_before_.count(rank) > 0;
  }

  // -- for faults -------------------------------------------------------------

  enum class report_fault { lost, twice, late };

  /// What happens to the n-th report of all workers.
  void plan_report_fault(std::size_t number, report_fault kind) {
    bad_report_ = {number, kind};
  }

  /// Reports that workers have made.
  [[nodiscard]] std::size_t reports() const noexcept {
    return reports_;
  }

  /// The host pool refuses the n-th question for slots all but `left` slots.
  void plan_refusal(std::size_t number, std::size_t left) {
    refusal_ = {number, left};
  }

  /// Slots that the host pool gave to each question, in order.
  [[nodiscard]] const std::vector<std::size_t>& allocations() const noexcept {
    return allocations_;
  }

  /// Kills the actor whose turn it is in the plain schedule.
  /// @returns its name; empty if it is no actor's turn
  std::string kill_next_actor();

  /// Runs the plain course for so many events, kills the scheduler, and runs on
  /// until nothing happens any more.
  void run_until_scheduler_dies(std::size_t events);

  /// No worker and no device is there any more.
  [[nodiscard]] bool all_ranks_gone() const;

  [[nodiscard]] engine_model& engine() noexcept {
    return *engine_;
  }

  [[nodiscard]] findings& all_findings() noexcept {
    return findings_;
  }

private:
  struct player_state {
    static inline const char* name = "player";
  };

  // -- making it --------------------------------------------------------------

  engine_model::outlet engine_outlet();
  void start_rank(rank_id rank);
  void open_down_link(rank_id rank);
  void open_up_link(rank_id rank);
  void attach(rank_id rank);
  void give_device(rank_id rank);
  [[nodiscard]] int devices() const;
  void pin_pool(rank_id rank, std::uint64_t host_bytes);
  template <class Handle>
  void enroll(const Handle& actor, rank_id rank, rank_role role);
  template <class Handle>
  void watch(const Handle& actor, const std::string& name,
             std::optional<rank_id> rank);
  static engine_actor::behavior_type
  play_engine(engine_actor::stateful_pointer<player_state> self, world* w);
  static rank_side_actor::behavior_type
  play_rank_side(rank_side_actor::stateful_pointer<player_state> self, world* w,
                 rank_id rank, incarnation_id life);
  caf::behavior play_down_link(caf::event_based_actor* self, rank_id rank);
  caf::behavior play_up_link(caf::event_based_actor* self, rank_id rank);
  void keep_plan(rank_id rank, std::string line);
  void hear(std::string line);

  // -- choices ----------------------------------------------------------------

  using choices = std::vector<choice>;

  [[nodiscard]] choices open_choices() const;
  void add_messages(choices& out) const;
  void add_copies(choices& out) const;
  void add_moves(choices& out) const;
  void add_compute(choices& out) const;
  void add_engine_and_time(choices& out) const;
  void add_trouble(choices& out) const;
  std::size_t choose(const choices& open);
  void perform(const choice& what, std::size_t index);
  bool plain_step();
  [[nodiscard]] std::string text_of(const choice& what,
                                    std::size_t index) const;
  /// "worker 1", or `otherwise` for an actor of no rank.
  [[nodiscard]] std::string name_of(caf::actor_id id,
                                    const char* otherwise) const;
  /// @returns null if it belongs to no rank
  [[nodiscard]] const rank_member* member(caf::actor_id id) const;

  // -- events -----------------------------------------------------------------

  void step_actor(std::size_t index);
  void record_input(caf::scheduled_actor& actor);
  void step_cache(std::size_t index);
  void run_quietly();
  void pass_time(std::chrono::nanoseconds span);
  void ready(rank_id rank, const step_ready& x);
  void enqueue_compute(rank_id rank, step_id step, std::uint64_t fence);
  void start_compute(rank_id rank);
  void end_compute(rank_id rank);
  [[nodiscard]] bool computes_on_device(rank_id rank) const;
  [[nodiscard]] bool ended_alone(rank_id rank, step_id step, job_id job) const;
  void move_device(const choice& what);
  void check_machine();

  // -- trouble ----------------------------------------------------------------

  void hear_reports(rank_id rank, const msg::transfers_done& x);
  /// @param passed gets what goes on to the scheduler
  void hear_report(rank_id rank, const msg::transfer_done& x,
                   msg::transfers_done& passed);
  void forward_reports(rank_id rank, msg::transfers_done x);
  [[nodiscard]] bool repeats_a_report() const;
  std::function<void(const core::order_breach&)> breach_listener();
  void kill_rank(rank_id rank);
  void notice_deaths();
  void lose_rank(rank_id rank);
  void fail_copy(const choice& what);
  void bring_back(rank_id rank);
  void cut_link(rank_id rank);
  void notice_cut(rank_id rank, bool at_worker);
  void join_again(rank_id rank);
  void add_cuts(choices& out) const;

  // -- the end ----------------------------------------------------------------

  void check_rest();
  void check_leftovers();
  void check_pool();

  // -- members ----------------------------------------------------------------

  scenario what_;
  const copy_way& way_;
  chooser* next_;
  bool traced_;
  std::shared_ptr<const core::layout> shape_;
  findings findings_;
  text_book texts_;
  std::unique_ptr<shadow> memory_;
  std::unique_ptr<engine_model> engine_;
  std::deque<rank_part> ranks_;

  /// Given to ranks so far.
  int devices_ = 0;
  /// Questions since anything else was said to the scheduler.
  std::vector<ticket_id> explained_;

  history past_;
  /// Whose an actor is, or was.
  std::map<caf::actor_id, rank_member> members_;
  std::uint32_t failures_ = 0;
  std::uint32_t deadlines_ = 0;
  std::uint32_t deaths_ = 0;
  std::uint32_t cuts_ = 0;
  std::uint32_t idle_times_ = 0;
  std::set<caf::actor_id> gone_;
  /// Killed on purpose.
  std::set<caf::actor_id> doomed_;
  /// Whose worker or device is among them.
  std::set<rank_id> doomed_ranks_;
  /// To which the connection was cut once.
  std::set<rank_id> cut_before_;
  /// The scenario is over: what is left is looked at.
  bool ending_ = false;
  bool over_ = false;
  std::size_t reports_ = 0;
  struct bad_report {
    std::size_t number = 0;
    report_fault kind = report_fault::lost;
  };
  std::optional<bad_report> bad_report_;
  struct refusal {
    std::size_t number = 0;
    std::size_t left = 0;
  };
  std::optional<refusal> refusal_;
  std::vector<std::size_t> allocations_;
  /// Held back until nothing else can happen.
  std::optional<std::pair<rank_id, msg::transfer_done>> late_report_;
  std::map<step_id, std::uint32_t> computed_;

  engine_actor port_;
  cache_manager_actor cache_;
  scheduler_actor scheduler_;
  test::actor_world actors_;
};

} // namespace kvtide::explore
