// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/world.hpp"

#include "messages/plan_bytes.hpp"
#include "tests/explore/describe.hpp"
#include "tests/support/listen.hpp"
#include "tests/support/mix.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace kvtide::explore {

namespace {

/// Of the one scheduler that there is.
constexpr std::uint64_t epoch = 1;

/// Bytes of one host slot: two layers of 64-bit tokens, in whole cache lines.
std::uint64_t slot_bytes(const core::layout& shape) {
  auto most = token_count{0};
  for (const auto& group : shape.groups)
    most = std::max(most, group.chunk_tokens);
  const auto bytes = static_cast<std::uint64_t>(most) * rank_memory::layers * 8;
  return (bytes + 63) / 64 * 64;
}

} // namespace

// -- making it ----------------------------------------------------------------

world::world(const scenario& what, chooser& next, bool traced)
  : what_(what), way_(copy_way_of(what.device, 0)), next_(&next),
    traced_(traced), shape_(std::make_shared<const core::layout>(
                       core::make_layout(what.opts).value())) {
  memory_ = std::make_unique<shadow>(shape_, texts_, findings_,
                                     what_.opts.ranks, what_.blocks);
  engine_ = std::make_unique<engine_model>(what_, shape_, texts_, *memory_,
                                           findings_, engine_outlet());
  port_ = actors_.launch(play_engine, this);
  cache_
    = actors_.launch(cache_manager, cache_manager_config{shape_, what_.opts});
  watch(cache_, "the cache manager", {});
  scheduler_ = actors_.launch(
    scheduler, scheduler_config{shape_, what_.opts, breach_listener(), epoch},
    cache_, port_);
  watch(scheduler_, "the scheduler", {});
  ranks_.resize(what_.opts.ranks);
  if (way_.cuda)
    start_cuda_machine(devices());
  for (rank_id r = 0; r < ranks_.size(); ++r)
    start_rank(r);
  run_quietly();
}

engine_model::outlet world::engine_outlet() {
  auto out = engine_model::outlet{};
  out.tell = [this](caf::message x) {
    caf::actor_cast<caf::strong_actor_ptr>(scheduler_)
      ->enqueue(nullptr, caf::make_message_id(), std::move(x), nullptr);
  };
  out.decide = [this](std::size_t n) {
    auto open = std::vector<choice>{};
    for (std::size_t i = 0; i < n; ++i)
      open.push_back({choice_kind::whim, center, i});
    const auto picked = ending_ ? 0 : choose(open);
    past_.fingerprint = test::mix(past_.fingerprint, picked);
    return picked;
  };
  out.stepped = [this](step_id step) {
    for (rank_id r = 0; r < ranks_.size(); ++r) {
      if (!ranks_[r].alive) {
        enqueue_compute(r, step, 0);
        continue;
      }
      ranks_[r].expected.insert(step);
      // Where plans come by themselves, a rank that lost the way to the
      // scheduler needs to be asked.
      if (what_.remote && what_.opts.delivery == plan_delivery::direct)
        caf::anon_send(ranks_[r].worker, msg::await_step{step, {}});
    }
  };
  out.deliver = [this](step_id step, std::string bytes) {
    const auto plan = decode_plan(bytes);
    for (rank_id r = 0; r < ranks_.size(); ++r) {
      auto& rank = ranks_[r];
      if (!rank.alive || rank.expected.count(step) == 0)
        continue;
      memory_->planned(r, plan.value().begin);
      memory_->planned(r, plan.value().stores);
      caf::anon_send(rank.worker, msg::await_step{step, bytes});
    }
  };
  out.reset = [this] { memory_->reset(); };
  out.leave = [this] {
    if (way_.cuda)
      return false;
    for (auto& rank : ranks_)
      caf::anon_send(rank.worker, msg::unregister_kv{});
    return true;
  };
  out.come_back = [this] {
    for (rank_id r = 0; r < ranks_.size(); ++r) {
      memory_->lose_memory(r);
      caf::anon_send(ranks_[r].worker,
                     msg::register_kv{memory_->memory(r).describe()});
    }
  };
  out.explained = [this](ticket_id lookup) { return past_.explained[lookup]; };
  return out;
}

world::~world() {
  over_ = true;
  for (auto& rank : ranks_)
    if (rank.cuda) {
      // The engines first: what they end with, the world has to hear.
      actors_.kill_at_once(rank.worker);
      actors_.kill_at_once(rank.device);
      rank.cuda->finish();
    }
  past_.inputs.clear();
  // No handle may outlive the actor system.
  port_ = nullptr;
  cache_ = nullptr;
  scheduler_ = nullptr;
  for (auto& rank : ranks_)
    rank.drop_handles();
}

template <class Handle>
void world::enroll(const Handle& actor, rank_id rank, rank_role role) {
  const auto& whose = ranks_[rank];
  members_[actor.id()] = {{rank, whose.incarnation, whose.connection}, role};
}

template <class Handle>
void world::watch(const Handle& actor, const std::string& name,
                  std::optional<rank_id> rank) {
  auto* ptr = caf::actor_cast<caf::abstract_actor*>(actor);
  ptr->attach_functor([this, id = ptr->id(), name,
                       rank](const caf::error& reason) {
    gone_.insert(id);
    // A worker and its device go together.
    if (!over_ && doomed_.count(id) == 0 && !(rank && ranks_[*rank].lost())
        && (!rank || (ranks_[*rank].alive && doomed_ranks_.count(*rank) == 0)))
      findings_.report("life",
                       name + " died: " + actors_.system().render(reason));
  });
}

void world::start_rank(rank_id r) {
  auto& rank = ranks_[r];
  give_device(r);
  rank.alive = true;
  rank.cut = rank.noticed_there = rank.noticed_here = false;
  open_down_link(r);
  open_up_link(r);
  rank.side = actors_.launch(play_rank_side, this, r, rank.incarnation);
  enroll(rank.side, r, rank_role::side);
  auto device_options = device_config{};
  device_options.groups = static_cast<std::uint32_t>(shape_->groups.size());
  device_options.blocks_per_chunk
    = static_cast<std::uint32_t>(shape_->blocks_per_chunk);
  device_options.host_bytes = what_.slots * slot_bytes(*shape_);
  device_options.rank = r;
  device_options.on_breach = breach_listener();
  device_options.engine = [this, r](gpu::wake_function wake) {
    auto& rank_ = ranks_[r];
    if (!rank_.cuda)
      return rank_.desk->open(std::move(wake));
    return rank_.cuda->open(
      std::move(wake), test::state_of<device_state>(rank_.device).own_pool);
  };
  rank.device = actors_.launch(device, device_options);
  if (rank.cuda)
    pin_pool(r, device_options.host_bytes);
  enroll(rank.device, r, rank_role::device);
  watch(rank.device, "the device of rank " + std::to_string(r), r);
  auto worker_options = worker_config_of(what_.opts, r, rank.incarnation);
  worker_options.on_breach = breach_listener();
  worker_options.remote = what_.remote;
  const auto decider = caf::actor_cast<scheduler_worker_port>(rank.up);
  rank.worker = actors_.launch(gpu_worker, worker_options, rank.device,
                               what_.remote ? scheduler_worker_port{} : decider,
                               rank.side);
  enroll(rank.worker, r, rank_role::worker);
  watch(rank.worker, "the worker of rank " + std::to_string(r), r);
  if (what_.remote)
    attach(r);
  caf::anon_send(rank.worker, msg::register_kv{memory_->memory(r).describe()});
}

void world::open_down_link(rank_id r) {
  auto& rank = ranks_[r];
  rank.down = actors_.launch([this, r](caf::event_based_actor* self) {
    return play_down_link(self, r);
  });
  enroll(rank.down, r, rank_role::link_to_worker);
}

void world::open_up_link(rank_id r) {
  auto& rank = ranks_[r];
  rank.up = actors_.launch(
    [this, r](caf::event_based_actor* self) { return play_up_link(self, r); });
  enroll(rank.up, r, rank_role::link_from_worker);
}

/// As the link of its process does once a door has let it in.
void world::attach(rank_id r) {
  const auto& rank = ranks_[r];
  caf::anon_send(rank.worker,
                 msg::attach{rank.incarnation, epoch,
                             caf::actor_cast<caf::strong_actor_ptr>(rank.up)});
}

/// Who makes the copies of a new life.
void world::give_device(rank_id r) {
  auto& rank = ranks_[r];
  if (!way_.cuda) {
    rank.desk = std::make_shared<copy_desk>(
      r, *memory_,
      [this, r](std::uint64_t handle) {
        return ranks_[r].ended.count(handle) > 0;
      },
      what_.stream_fences);
    return;
  }
  if (rank.cuda && !rank.lost())
    return;
  auto& memory = memory_->memory(r);
  auto made = std::make_shared<cuda_copies>(r, devices_++, way_, memory.bytes(),
                                            *memory_, findings_);
  memory.move_to(made->memory());
  rank.cuda = std::move(made);
}

/// A context that was lost does not come back, so the next life has a device of
/// its own.
int world::devices() const {
  return static_cast<int>(what_.opts.ranks + what_.rank_deaths);
}

/// The device actor finds the pool as its registrar has left it.
void world::pin_pool(rank_id r, std::uint64_t host_bytes) {
  auto& rank = ranks_[r];
  const auto described = memory_->memory(r).describe();
  auto shape = gpu::make_geometry(
    described, static_cast<std::uint32_t>(shape_->groups.size()),
    static_cast<std::uint32_t>(shape_->blocks_per_chunk),
    gpu::memory_domain::host_only);
  auto wanted = gpu::host_pool_config{};
  wanted.host_bytes = host_bytes;
  wanted.registrar = rank.cuda->make_registrar();
  const auto opened = test::state_of<device_state>(rank.device)
                        .own_pool->open(shape.value(), described, wanted);
  if (!opened)
    findings_.report("life", opened.failure().text);
}

std::vector<std::string> world::leaks() {
  return stand_in::leaks();
}

// -- whom it plays ------------------------------------------------------------

engine_actor::behavior_type
world::play_engine(engine_actor::stateful_pointer<player_state>, world* w) {
  const auto heard
    = [w](const engine_event& x) { w->hear(describe(x, w->texts_)); };
  return test::listen<engine_actor>(
    [=](const stats_answer& x) { w->past_.counted = x.values; },
    [=](const rank_back& x) {
      heard(x);
      const auto& rank = w->ranks_[x.rank];
      if (rank.alive && rank.incarnation == x.incarnation)
        w->engine_->welcome(x.rank); // Else it has died again since.
    },
    [=](const cache_lost& x) {
      heard(x);
      w->memory_->reset();
    },
    [=](const auto& x) {
      if constexpr (std::is_constructible_v<engine_event, decltype(x)>)
        heard(x);
      if constexpr (requires { w->engine_->on(x); })
        w->engine_->on(x);
    });
}

rank_side_actor::behavior_type
world::play_rank_side(rank_side_actor::stateful_pointer<player_state>, world* w,
                      rank_id r, incarnation_id life) {
  return {
    [=](const kv_registered& x) {
      if (x.reason.code != ec::none)
        w->findings_.report("life", x.reason.text);
    },
    [=](const kv_unregistered&) { w->engine_->left(r); },
    [=](const step_ready& x) {
      if (w->ranks_[r].alive && w->ranks_[r].incarnation == life)
        w->ready(r, x);
    },
    [=](const rank_failed& x) {
      if (w->ranks_[r].alive && w->ranks_[r].incarnation == life
          && w->doomed_ranks_.count(r) == 0 && !w->over_ && !w->ranks_[r].lost()
          && !w->what_.remote)
        w->findings_.report("life", x.reason.text);
    },
    [](const rank_stats&) {},
  };
}

caf::behavior world::play_down_link(caf::event_based_actor*, rank_id r) {
  // For the worker it is the other link that speaks.
  const auto forward = [this, r](const auto& x) {
    caf::send_as(ranks_[r].up, caf::actor_cast<caf::actor>(ranks_[r].worker),
                 x);
  };
  return {
    [this, r, forward](const msg::begin_step& x) {
      if (ranks_[r].cut)
        return;
      memory_->planned(r, x);
      keep_plan(r, describe(x, texts_));
      forward(x);
    },
    [this, r, forward](const msg::pause& x) {
      if (ranks_[r].cut)
        return;
      memory_->paused(r, x.step);
      forward(x);
    },
    [this, r, forward](const msg::seat& x) {
      if (ranks_[r].cut)
        return;
      memory_->cut_off(r); // What came before it is not listened to.
      forward(x);
    },
    [this, r, forward](const msg::report_again& x) {
      if (!ranks_[r].cut)
        forward(x);
    },
    [this, r, forward](const msg::stores& x) {
      if (ranks_[r].cut)
        return;
      memory_->planned(r, x);
      keep_plan(r, describe(x, texts_));
      forward(x);
    },
  };
}

caf::behavior world::play_up_link(caf::event_based_actor*, rank_id r) {
  // Whoever joins is the one to whom plans go.
  const auto forward = [this, r, down = ranks_[r].down](const auto& x) {
    if (!ranks_[r].cut)
      caf::send_as(down, caf::actor_cast<caf::actor>(scheduler_), x);
  };
  return {
    [=, this](const msg::worker_ready& x) {
      if (ranks_[r].cut || over_)
        return;
      if (auto& rank = ranks_[r]; x.incarnation == rank.incarnation) {
        rank.joined = true;
        // The engine may have taken its memory back since.
        if (const auto& kv
            = test::state_of<device_state>(rank.device).registration)
          memory_->joined(r, kv->pool.base, kv->geometry.slot_bytes());
      }
      forward(x);
      engine_->came_back(x.rank);
    },
    [=](const msg::worker_left& x) { forward(x); },
    [this, r](const msg::transfers_done& x) {
      if (!ranks_[r].cut)
        hear_reports(r, x);
    },
    [=](const msg::steps_taken& x) { forward(x); },
    [=](const msg::ticked& x) { forward(x); },
  };
}

/// What is planned after the scenario is not compared.
void world::keep_plan(rank_id r, std::string line) {
  if (!ending_)
    ranks_[r].plans.push_back(std::move(line));
}

void world::hear(std::string line) {
  if (traced_)
    past_.trace.push_back("    engine hears " + line);
  if (!ending_)
    past_.heard.push_back(std::move(line));
}

} // namespace kvtide::explore
