// SPDX-License-Identifier: Apache-2.0

#include "bench/actors_under_test.hpp"

#include "actors/cache_manager.hpp"
#include "actors/gpu_worker.hpp"
#include "actors/scheduler.hpp"
#include "core/layout.hpp"
#include "tests/support/actor_world.hpp"
#include "tests/support/instant_device.hpp"
#include "tests/support/listen.hpp"
#include "tests/support/message_name.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_config.hpp>
#include <caf/atom.hpp>
#include <caf/exit_reason.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_actor.hpp>
#include <caf/monitorable_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace kvtide::bench {

// -- neighbours ---------------------------------------------------------------

namespace {

struct neighbour_state {
  static inline const char* name = "neighbour";
};

using shared_notes = std::shared_ptr<notes>;

engine_actor::behavior_type
play_engine(engine_actor::stateful_pointer<neighbour_state>,
            const shared_notes& said) {
  return test::listen<engine_actor>(
    [=](const step_plan& x) { said->planned = x.step; },
    [=](const lookup_answer&) { ++said->lookups; });
}

rank_side_actor::behavior_type
play_rank(rank_side_actor::stateful_pointer<neighbour_state> self) {
  return test::listen<rank_side_actor>([=](const step_ready& x) {
    self->send(caf::actor_cast<gpu_worker_actor>(self->current_sender()),
               msg::end_step{x.step, {}});
  });
}

/// Stands before a worker and notes when a plan comes for it, on the thread of
/// whoever sends it.
class begin_step_watch : public caf::monitorable_actor {
public:
  begin_step_watch(caf::actor_config& config, caf::strong_actor_ptr worker,
                   shared_notes said)
    : caf::monitorable_actor(config), worker_(std::move(worker)),
      said_(std::move(said)) {
    // nop
  }

  void enqueue(caf::mailbox_element_ptr what,
               caf::execution_unit* context) override {
    if (what->content().match_elements<msg::begin_step>())
      said_->begin_left = std::chrono::steady_clock::now();
    worker_->enqueue(std::move(what), context);
  }

private:
  caf::strong_actor_ptr worker_;
  shared_notes said_;
};

} // namespace

// -- actors -------------------------------------------------------------------

struct actors_under_test::config_type : caf::actor_system_config {
  explicit config_type(std::size_t threads) {
    register_messages(*this);
    if (threads == 0)
      set("scheduler.policy", caf::atom("testing"));
    else
      set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", std::max<std::size_t>(threads, 1));
    set("logger.verbosity", caf::atom("quiet"));
  }
};

actors_under_test::actors_under_test(const load_config& config,
                                     std::size_t threads)
  : threads_(threads), config_(std::make_unique<config_type>(threads)),
    system_(std::make_unique<caf::actor_system>(*config_)) {
  const auto opts = options_of(config);
  const auto shape
    = std::make_shared<const core::layout>(core::make_layout(opts).value());
  const auto keep = [this](const auto& handle) {
    actors_.push_back(caf::actor_cast<caf::strong_actor_ptr>(handle));
    return handle;
  };
  const auto engine = keep(system_->spawn(play_engine, notes_));
  const auto cache
    = system_->spawn(cache_manager, cache_manager_config{shape, opts});
  scheduler_ = system_->spawn(scheduler, scheduler_config{shape, opts, {}},
                              cache, engine);
  for (rank_id rank = 0; rank < opts.ranks; ++rank) {
    const auto side = keep(system_->spawn(play_rank));
    const auto dev
      = keep(system_->spawn(test::instant_device, pool_slots,
                            static_cast<core::device_check*>(nullptr)));
    const auto worker = keep(
      system_->spawn(gpu_worker, worker_config_of(opts, rank, 1), dev,
                     caf::actor_cast<scheduler_worker_port>(scheduler_), side));
    auto memory = kv_memory{};
    memory.rank = rank;
    caf::anon_send(worker, msg::register_kv{std::move(memory)});
  }
  keep(scheduler_);
  keep(cache);
  settle();
  watch_begin_step();
}

void actors_under_test::watch_begin_step() {
  auto& seat = test::state_of<scheduler_state>(scheduler_).ranks.front();
  auto config = caf::actor_config{};
  const auto watch = caf::make_actor<begin_step_watch, caf::strong_actor_ptr>(
    system_->next_actor_id(), system_->node(), system_.get(), config,
    caf::actor_cast<caf::strong_actor_ptr>(seat.worker), notes_);
  seat.worker = caf::actor_cast<gpu_worker_actor>(watch);
}

actors_under_test::~actors_under_test() {
  caf::anon_send_exit(scheduler_, caf::exit_reason::kill);
  for (const auto& x : actors_)
    caf::anon_send_exit(x, caf::exit_reason::kill);
  actors_.clear();
  scheduler_ = nullptr;
  if (threads_ > 0)
    return;
  auto& coordinator
    = dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler());
  while (coordinator.run() + coordinator.trigger_timeouts() > 0)
    ; // nop
}

bool actors_under_test::all_idle() const {
  return std::all_of(actors_.begin(), actors_.end(), [](const auto& x) {
    auto* ptr = caf::actor_cast<caf::abstract_actor*>(x);
    return dynamic_cast<caf::scheduled_actor&>(*ptr).mailbox().blocked();
  });
}

void actors_under_test::run_and_count() {
  auto& coordinator
    = dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler());
  for (; coordinator.has_job(); coordinator.run_once()) {
    auto& next = dynamic_cast<caf::scheduled_actor&>(*coordinator.jobs.front());
    const auto* mail = next.mailbox().peek();
    if (mail == nullptr || mail->content().empty())
      continue; // Only to be started or ended.
    if (const auto* type = mail->content().type(0).second; type != nullptr)
      ++(*counts_)[test::message_name(*type)];
  }
}

void actors_under_test::settle() {
  if (counts_ != nullptr)
    return run_and_count();
  if (threads_ == 0) {
    dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler()).run();
    return;
  }
  // A message may overtake one look, but not two.
  for (auto looks = 0; looks < 2; ++looks)
    if (!all_idle()) {
      looks = -1;
      std::this_thread::yield();
    }
}

actors_under_test::timing actors_under_test::step(step_call call) {
  const auto number = call.step;
  const auto since = [start = clock::now()](clock::time_point moment) {
    return std::chrono::duration<double, std::micro>{moment - start}.count();
  };
  send(msg::step{0, std::move(call)});
  if (threads_ > 0)
    while (notes_->planned != number)
      std::this_thread::yield();
  settle();
  const auto all = since(clock::now());
  return {since(notes_->begin_left), all};
}

} // namespace kvtide::bench
