// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/world.hpp"

#include "messages/plan_bytes.hpp"
#include "tests/explore/describe.hpp"
#include "tests/explore/mix.hpp"
#include "tests/explore/squatter.hpp"
#include "tests/support/listen.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace kvtide::explore {

namespace {

/// A run that goes on longer than this goes on for ever.
constexpr std::size_t most_events = 50'000;

/// Events until all copies must have ended without a scheduler.
constexpr std::size_t most_events_alone = 2'000;

/// Idle delays that may pass in one run, unless nothing else can happen.
constexpr std::uint32_t some_idle_times = 6;

/// Idle delays until everything must have come to rest.
constexpr std::uint32_t most_idle_times = 60;

/// Bytes of one host slot: two layers of 64-bit tokens, in whole cache lines.
std::uint64_t slot_bytes(const core::layout& shape) {
  auto most = token_count{0};
  for (const auto& group : shape.groups)
    most = std::max(most, group.chunk_tokens);
  const auto bytes = static_cast<std::uint64_t>(most) * rank_memory::layers * 8;
  return (bytes + 63) / 64 * 64;
}

template <class... Ts>
bool holds_any(const caf::type_erased_tuple& content) {
  return (content.match_elements<Ts>() || ...);
}

/// An answer to the item in progress is part of that item (S1).
bool is_answer(const caf::type_erased_tuple& content) {
  return holds_any<msg::search_keys, msg::store_offer, msg::load_offer,
                   msg::search_result, msg::stores_prepared, msg::load_prepared,
                   msg::rolled_back, msg::cache_events, msg::pool_report,
                   msg::key_states>(content);
}

bool asks_for_slots(caf::scheduled_actor& actor) {
  const auto* next = actor.mailbox().peek();
  return next != nullptr && holds_any<msg::prepare_stores>(next->content());
}

} // namespace

// -- making it ----------------------------------------------------------------

world::world(const scenario& what, chooser& next, bool traced)
  : what_(what), next_(&next), traced_(traced),
    shape_(std::make_shared<const core::layout>(
      core::make_layout(what.opts).value())) {
  memory_ = std::make_unique<shadow>(shape_, texts_, findings_,
                                     what_.opts.ranks, what_.blocks);
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
    fingerprint_ = mix(fingerprint_, picked);
    return picked;
  };
  out.stepped = [this](step_id step) {
    for (rank_id r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].alive)
        ranks_[r].expected.insert(step);
      else
        enqueue_compute(r, step, 0);
    }
  };
  out.deliver = [this](step_id step, std::string bytes) {
    const auto plan = decode_plan(actors_.system(), bytes);
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
  engine_ = std::make_unique<engine_model>(what_, shape_, texts_, *memory_,
                                           findings_, std::move(out));
  port_ = actors_.launch(play_engine, this);
  cache_
    = actors_.launch(cache_manager, cache_manager_config{shape_, what_.opts});
  watch(cache_, "the cache manager", {});
  scheduler_ = actors_.launch(
    scheduler, scheduler_config{shape_, what_.opts, breach_listener()}, cache_,
    port_);
  watch(scheduler_, "the scheduler", {});
  ranks_.resize(what_.opts.ranks);
  for (rank_id r = 0; r < ranks_.size(); ++r)
    start_rank(r);
  run_quietly();
}

world::~world() {
  over_ = true;
  inputs_.clear();
  // No handle may outlive the actor system.
  port_ = nullptr;
  cache_ = nullptr;
  scheduler_ = nullptr;
  for (auto& rank : ranks_) {
    rank.worker = nullptr;
    rank.device = nullptr;
    rank.down = nullptr;
    rank.up = nullptr;
    rank.side = nullptr;
  }
}

template <class Handle>
void world::watch(const Handle& actor, const std::string& name,
                  std::optional<rank_id> rank) {
  auto* ptr = caf::actor_cast<caf::abstract_actor*>(actor);
  ptr->attach_functor(
    [this, id = ptr->id(), name, rank](const caf::error& reason) {
      gone_.insert(id);
      // A worker and its device go together.
      if (!over_ && doomed_.count(id) == 0
          && (!rank || (ranks_[*rank].alive && doomed_.empty())))
        findings_.report("life",
                         name + " died: " + actors_.system().render(reason));
    });
}

void world::start_rank(rank_id r) {
  auto& rank = ranks_[r];
  rank.desk = std::make_shared<copy_desk>(
    r, *memory_,
    [this, r](std::uint64_t handle) {
      return ranks_[r].ended.count(handle) > 0;
    },
    what_.stream_fences);
  rank.alive = true;
  rank.down = actors_.launch([this, r](caf::event_based_actor* self) {
    return play_down_link(self, r);
  });
  links_.emplace(rank.down.id(), r);
  rank.up = actors_.launch(
    [this, r](caf::event_based_actor* self) { return play_up_link(self, r); });
  rank.side = actors_.launch(play_rank_side, this, r, rank.incarnation);
  auto device_options = device_config{};
  device_options.groups = static_cast<std::uint32_t>(shape_->groups.size());
  device_options.blocks_per_chunk
    = static_cast<std::uint32_t>(shape_->blocks_per_chunk);
  device_options.host_bytes = what_.slots * slot_bytes(*shape_);
  device_options.rank = r;
  device_options.on_breach = breach_listener();
  device_options.engine = [desk = rank.desk](gpu::wake_function wake) {
    return desk->open(std::move(wake));
  };
  rank.device = actors_.launch(device, device_options);
  devices_.emplace(rank.device.id(), r);
  watch(rank.device, "the device of rank " + std::to_string(r), r);
  auto worker_options = gpu_worker_config{};
  worker_options.rank = r;
  worker_options.incarnation = rank.incarnation;
  worker_options.rule = &core::rules_of(what_.opts.rules);
  worker_options.job_deadline = what_.opts.job_deadline;
  worker_options.idle_delay = what_.opts.idle_delay;
  worker_options.delivery = what_.opts.delivery;
  worker_options.on_breach = breach_listener();
  rank.worker = actors_.launch(gpu_worker, worker_options, rank.device,
                               caf::actor_cast<scheduler_worker_port>(rank.up),
                               rank.side);
  watch(rank.worker, "the worker of rank " + std::to_string(r), r);
  caf::anon_send(rank.worker, msg::register_kv{memory_->memory(r).describe()});
}

engine_actor::behavior_type
world::play_engine(engine_actor::stateful_pointer<link_state>, world* w) {
  const auto heard
    = [w](const engine_event& x) { w->hear(describe(x, w->texts_)); };
  return test::listen<engine_actor>(
    [=](const stats_answer& x) { w->stats_ = x.values; },
    [=](const rank_back& x) {
      heard(x);
      w->engine_->pause(false);
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
world::play_rank_side(rank_side_actor::stateful_pointer<link_state>, world* w,
                      rank_id r, incarnation_id life) {
  return {
    [=](const kv_registered& x) {
      if (x.reason.code != ec::none)
        w->findings_.report("life", x.reason.text);
    },
    [](const kv_unregistered&) {},
    [=](const step_ready& x) {
      if (w->ranks_[r].alive && w->ranks_[r].incarnation == life)
        w->ready(r, x);
    },
    [=](const rank_failed& x) {
      if (w->ranks_[r].alive && w->ranks_[r].incarnation == life
          && w->doomed_.empty() && !w->over_)
        w->findings_.report("life", x.reason.text);
    },
    [](const rank_stats&) {},
  };
}

caf::behavior world::play_down_link(caf::event_based_actor* self, rank_id r) {
  return {
    [this, self, r](const msg::begin_step& x) {
      memory_->planned(r, x);
      keep_plan(r, describe(x, texts_));
      self->send(caf::actor_cast<caf::actor>(ranks_[r].worker), x);
    },
    [this, self, r](const msg::report_again& x) {
      self->send(caf::actor_cast<caf::actor>(ranks_[r].worker), x);
    },
    [this, self, r](const msg::stores& x) {
      memory_->planned(r, x);
      keep_plan(r, describe(x, texts_));
      self->send(caf::actor_cast<caf::actor>(ranks_[r].worker), x);
    },
  };
}

caf::behavior world::play_up_link(caf::event_based_actor*, rank_id r) {
  // Whoever joins is the one to whom plans go.
  const auto forward = [this, down = ranks_[r].down](const auto& x) {
    caf::send_as(down, caf::actor_cast<caf::actor>(scheduler_), x);
  };
  return {
    [=, this](const msg::worker_ready& x) {
      if (auto& rank = ranks_[r]; x.incarnation == rank.incarnation) {
        rank.joined = true;
        const auto& dev = test::state_of<device_state>(rank.device);
        memory_->joined(r, dev.pool.base, dev.geometry->slot_bytes());
      }
      forward(x);
    },
    [this, r](const msg::transfer_done& x) { hear_report(r, x); },
    [=](const msg::ticked& x) { forward(x); },
  };
}

void world::hear_report(rank_id r, const msg::transfer_done& x) {
  if (x.status == job_status::done && x.incarnation == ranks_[r].incarnation)
    memory_->reported(r, x.job);
  const auto fault
    = bad_report_ == reports_++ ? report_fault_ : report_fault::none;
  switch (fault) {
    case report_fault::lost:
      return;
    case report_fault::late:
      late_report_.emplace(r, x);
      return;
    case report_fault::twice:
      forward_report(r, x);
      [[fallthrough]];
    case report_fault::none:
      forward_report(r, x);
  }
}

void world::forward_report(rank_id r, const msg::transfer_done& x) {
  caf::send_as(ranks_[r].down, caf::actor_cast<caf::actor>(scheduler_), x);
}

std::string world::kill_next_actor() {
  if (actors_.ready() == 0)
    return {};
  auto& next = actors_.ready_actor(0);
  auto name = std::string{next.name()};
  if (name == scheduler_state::name || name == link_state::name
      || name == "scheduled_actor")
    return {}; // The first has a fate of its own, the others play somebody.
  doomed_.insert(next.id());
  actors_.kill_at_once(caf::actor_cast<caf::actor>(&next));
  return name;
}

void world::run_until_scheduler_dies(std::size_t events) {
  const auto go_on = [this] {
    const auto open = open_choices();
    if (open.empty())
      return false;
    perform(open.front(), 0);
    return true;
  };
  while (performed_.size() < events && go_on())
    ;           // nop
  over_ = true; // All may go now.
  actors_.kill_at_once(scheduler_);
  for (auto& rank : ranks_) {
    actors_.kill_at_once(rank.down);
    actors_.kill_at_once(rank.up); // Stands for the scheduler there.
  }
  while (performed_.size() < events + most_events_alone && go_on())
    ; // nop
}

bool world::all_ranks_gone() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [this](const auto& rank) {
    return gone_.count(rank.worker.id()) > 0
        && gone_.count(rank.device.id()) > 0;
  });
}

/// The order checker of the product names the rule first.
std::function<void(const core::order_breach&)> world::breach_listener() {
  return [this](const core::order_breach& x) {
    if (breaches_expected_ != x.rule)
      findings_.report(core::to_string(x.rule), "the order checker: " + x.text);
  };
}

/// What is planned after the scenario is not compared.
void world::keep_plan(rank_id r, std::string line) {
  if (!ending_)
    ranks_[r].plans.push_back(std::move(line));
}

void world::hear(std::string line) {
  if (traced_)
    trace_.push_back("    engine hears " + line);
  if (!ending_)
    heard_.push_back(std::move(line));
}

// -- going on -----------------------------------------------------------------

void world::run(const interference& before) {
  while (!found()) {
    if (before)
      before(*this, performed_.size());
    auto open = open_choices();
    if (open.empty())
      break;
    const auto index = choose(open);
    const auto what = open[index];
    perform(what, index);
    if (performed_.size() > most_events)
      findings_.report("life", "the run does not come to rest");
  }
  if (!found() && !engine_->over())
    findings_.report("life", "nothing can happen any more, but requests are "
                             "still alive");
  if (!found())
    check_rest();
}

std::vector<choice> world::open_choices() {
  using kind = choice_kind;
  for (rank_id r = 0; r < ranks_.size(); ++r)
    if (ranks_[r].alive && gone_.count(ranks_[r].worker.id()) > 0)
      lose_rank(r);
  auto out = std::vector<choice>{};
  for (std::size_t i = 0; i < actors_.ready(); ++i) {
    const auto& actor = actors_.ready_actor(i);
    auto place = center;
    const auto number = number_of(actor);
    // Workers and devices touch their own rank only: what they send to others
    // goes through their links.
    for (rank_id r = 0; r < ranks_.size(); ++r)
      if (const auto id = actor.id();
          (ranks_[r].worker && ranks_[r].worker.id() == id)
          || (ranks_[r].device && ranks_[r].device.id() == id)
          || (ranks_[r].down && ranks_[r].down.id() == id))
        place = r;
    out.push_back({kind::actor, place, number});
  }
  auto copying = false;
  const auto each_rank = [&](auto fun) {
    for (rank_id r = 0; r < ranks_.size(); ++r)
      fun(r, ranks_[r]);
  };
  each_rank([&](rank_id r, const rank_part& rank) {
    for (auto id : rank.desk->running())
      out.push_back({kind::copy_end, r, id});
  });
  each_rank([&](rank_id r, const rank_part& rank) {
    for (auto id : rank.desk->startable())
      out.push_back({kind::copy_start, r, id});
  });
  copying = std::any_of(out.begin(), out.end(), [](const choice& x) {
    return x.kind == kind::copy_end || x.kind == kind::copy_start;
  });
  // Two ranks that end the same step are seen by the engine: its place is the
  // center.
  each_rank([&](rank_id r, const rank_part& rank) {
    if (!rank.stream.empty() && rank.stream.front().running)
      out.push_back({kind::compute_end, center, r});
  });
  each_rank([&](rank_id r, const rank_part& rank) {
    if (!rank.stream.empty() && !rank.stream.front().running
        && rank.desk->fence_over(rank.stream.front().fence))
      out.push_back({kind::compute_start, r, rank.stream.front().step});
  });
  if (engine_->can_take_outputs())
    out.push_back({kind::outputs, center, 0});
  if (engine_->can_turn(false))
    out.push_back({kind::turn, center, 0});
  if (out.empty() && late_report_)
    out.push_back({kind::late_report, center, 0});
  const auto timers = actors_.timers_pending();
  if (timers
      && (out.empty() ? idle_times_ < most_idle_times
                      : idle_times_ < some_idle_times && !ending_))
    out.push_back({kind::idle_time, center, 0});
  if (out.empty() && engine_->can_turn(true))
    out.push_back({kind::turn, center, 0});
  if (ending_ || over_)
    return out;
  if (timers && copying && deadlines_ < what_.deadlines)
    out.push_back({kind::deadline, center, 0});
  if (failures_ < what_.copy_failures)
    each_rank([&](rank_id r, const rank_part& rank) {
      for (auto id : rank.desk->running())
        for (auto row : rank.desk->rows_to_fail(id))
          out.push_back({kind::copy_failure, r, id, row});
    });
  if (deaths_ < what_.rank_deaths && !engine_->over())
    each_rank([&](rank_id r, const rank_part& rank) {
      if (rank.joined)
        out.push_back({kind::rank_death, center, r});
    });
  each_rank([&](rank_id r, const rank_part& rank) {
    if (!rank.alive && gone_.count(rank.device.id()) > 0)
      out.push_back({kind::rank_return, center, r});
  });
  return out;
}

std::size_t world::choose(const std::vector<choice>& open) {
  if (ending_ || open.size() == 1)
    return 0;
  const auto index = next_->pick(open);
  picks_.push_back(static_cast<std::uint32_t>(index));
  decided_at_.push_back(performed_.size());
  return index;
}

void world::perform(const choice& what, std::size_t index) {
  performed_.push_back(what);
  fingerprint_ = mix(fingerprint_, mix(static_cast<std::uint64_t>(what.kind),
                                       mix(what.place, what.subject)));
  fingerprint_ = mix(fingerprint_, what.row);
  if (traced_)
    trace_.push_back(text_of(what, index));
  switch (what.kind) {
    case choice_kind::actor:
      return step_actor(index);
    case choice_kind::copy_end:
      return ranks_[what.place].desk->end(what.subject);
    case choice_kind::copy_start:
      return ranks_[what.place].desk->start(what.subject);
    case choice_kind::copy_failure:
      ++failures_;
      return ranks_[what.place].desk->fail(what.subject, what.row);
    case choice_kind::compute_start:
      memory_->compute_starts(what.place);
      ranks_[what.place].stream.front().running = true;
      return;
    case choice_kind::compute_end: {
      const auto r = static_cast<rank_id>(what.subject);
      auto& rank = ranks_[r];
      const auto step = rank.stream.front().step;
      memory_->compute_ends(r);
      rank.stream.pop_front();
      rank.ended.insert(step + 1);
      if (++computed_[step] == ranks_.size())
        engine_->computed(step);
      return;
    }
    case choice_kind::outputs:
      return engine_->take_outputs();
    case choice_kind::turn:
      return engine_->turn();
    case choice_kind::late_report:
      forward_report(late_report_->first, late_report_->second);
      late_report_.reset();
      return;
    case choice_kind::idle_time:
      ++idle_times_;
      return pass_time(what_.opts.idle_delay);
    case choice_kind::deadline:
      ++deadlines_;
      return pass_time(what_.opts.job_deadline);
    case choice_kind::rank_death:
      ++deaths_;
      return kill_rank(static_cast<rank_id>(what.subject));
    case choice_kind::rank_return:
      return returned(static_cast<rank_id>(what.subject));
    case choice_kind::whim:
      return;
  }
}

void world::step_actor(std::size_t index) {
  auto& actor = actors_.ready_actor(index);
  if (scheduler_ && actor.id() == scheduler_.id())
    record_input(actor);
  if (actor.id() == cache_.id() && asks_for_slots(actor))
    step_cache(index);
  else
    actors_.step(index);
}

void world::step_cache(std::size_t index) {
  auto& pool = test::state_of<cache_manager_state>(cache_).cache->pool();
  auto other = std::optional<squatter>{};
  if (refusal_ && refusal_->number == allocations_.size())
    other.emplace(pool, refusal_->left);
  const auto before = pool.state().writing;
  actors_.step(index);
  allocations_.push_back(pool.state().writing - before);
}

void world::record_input(caf::scheduled_actor& actor) {
  auto* next = actor.mailbox().peek();
  if (ending_ || next == nullptr || is_answer(next->content()))
    return;
  auto added = scheduler_input{
    actors_.now(), next->copy_content_to_message(), {}, {}, {}};
  if (next->content().match_elements<msg::worker_ready>()) {
    added.rank = next->content().get_as<msg::worker_ready>(0).rank;
  } else if (next->content().match_elements<caf::down_msg>()) {
    const auto& source = next->content().get_as<caf::down_msg>(0).source;
    if (const auto known = links_.find(source.id()); known != links_.end())
      added.worker_died = known->second;
    if (const auto known = devices_.find(source.id()); known != devices_.end())
      added.device_died = known->second;
  }
  inputs_.push_back(std::move(added));
}

void world::run_quietly() {
  while (actors_.ready() > 0)
    step_actor(0);
}

void world::pass_time(std::chrono::nanoseconds span) {
  if (!over_) {
    const auto& now = test::state_of<scheduler_state>(scheduler_);
    busy_in_time_ |= !std::holds_alternative<std::monostate>(now.phase)
                  || !now.queue.empty();
  }
  memory_->time_passed();
  actors_.pass(span);
}

void world::ready(rank_id r, const step_ready& x) {
  const auto events = x.wait_for.kind == fence::kind_t::event;
  memory_->ready(r, x.step, !events);
  if (ranks_[r].expected.count(x.step) == 0)
    return findings_.report("S5", "step " + std::to_string(x.step)
                                    + " became ready twice, or unasked, on "
                                      "rank "
                                    + std::to_string(r));
  enqueue_compute(r, x.step, events ? x.wait_for.handle : 0);
  caf::anon_send(ranks_[r].worker, msg::end_step{x.step, {x.step + 1}});
}

void world::enqueue_compute(rank_id r, step_id step, std::uint64_t fence) {
  auto& rank = ranks_[r];
  rank.expected.erase(step);
  memory_->enqueued(r, step, engine_->rows(step));
  rank.stream.push_back({step, fence, false});
}

void world::kill_rank(rank_id r) {
  auto& rank = ranks_[r];
  if (!rank.alive)
    return;
  rank.alive = false; // Its end is no finding.
  actors_.kill_at_once(rank.worker);
  actors_.kill_at_once(rank.device);
  lose_rank(r);
}

void world::lose_rank(rank_id r) {
  auto& rank = ranks_[r];
  rank.alive = false;
  rank.joined = false;
  engine_->pause(true);
  // What it said and the scheduler has not heard may still arrive.
  actors_.kill_at_once(rank.down);
  // Its steps go on without fences: jobs that these would wait for have failed.
  for (auto step : std::set<step_id>{rank.expected})
    enqueue_compute(r, step, 0);
}

void world::returned(rank_id r) {
  memory_->starts_again(r);
  ++ranks_[r].incarnation;
  start_rank(r);
}

// -- the end ------------------------------------------------------------------

void world::check_rest() {
  ending_ = true;
  memory_->check_rest();
  const auto leftovers = [this] {
    engine_->call_stats();
    run_quietly();
    if (found())
      return;
    if (!stats_)
      return findings_.report("life", "the scheduler does not answer");
    const auto& x = *stats_;
    const auto check = [this](std::uint64_t left, const char* what) {
      if (left > 0)
        findings_.report("rest",
                         std::to_string(left) + " " + what + " are left over");
    };
    if (x.lost_requests + x.lost_caches > 0 && doomed_.empty())
      findings_.report("life", "a request or the cache manager died");
    check(x.tracked_requests, "tracked requests");
    check(x.jobs_in_flight, "jobs");
    check(x.quarantined_slots, "quarantined slots");
    check(x.pinned_slots, "pinned slots");
    check(x.held_slots, "held slots");
    check(x.writing_slots, "slots in writing");
    check(x.watched_blocks, "watched blocks");
    check(x.sliding_entries, "entries of the sliding index");
    if (deaths_ == 0 && !breaches_expected_)
      check(x.order_errors, "order errors");
    if (!engine_->holds_nothing())
      findings_.report("rest", "blocks of the device are left over");
  };
  leftovers();
  if (found())
    return;
  // It still serves, and what it has is right on all ranks.
  engine_->add_probes();
  while (!found()) {
    const auto open = open_choices();
    if (open.empty())
      break;
    perform(open.front(), 0);
  }
  if (!found() && !engine_->over())
    findings_.report("life", "a request that came after all others is stuck");
  if (!found())
    leftovers();
}

// -- names --------------------------------------------------------------------

std::uint64_t world::number_of(const caf::scheduled_actor& actor) {
  const auto [i, is_new] = numbers_.emplace(actor.id(), numbers_.size());
  return i->second;
}

std::string world::text_of(const choice& what, std::size_t index) {
  const auto rank = "rank " + std::to_string(what.place) + ": ";
  const auto id = std::to_string(what.subject);
  switch (what.kind) {
    case choice_kind::actor: {
      auto& actor = actors_.ready_actor(index);
      auto who = std::string{actor.name()};
      for (rank_id r = 0; r < ranks_.size(); ++r) {
        const auto is = [&](const auto& handle) {
          return handle && handle.id() == actor.id();
        };
        const auto suffix = " " + std::to_string(r);
        if (is(ranks_[r].worker) || is(ranks_[r].device) || is(ranks_[r].side))
          who += suffix;
        else if (is(ranks_[r].down))
          who = "link to worker" + suffix;
        else if (is(ranks_[r].up))
          who = "link from worker" + suffix;
      }
      auto* next = actor.mailbox().peek();
      return who + " <- "
           + (next != nullptr ? describe(*next, texts_) : "its start");
    }
    case choice_kind::copy_end:
      return rank + "copy of job " + id + " ends";
    case choice_kind::copy_start:
      return rank + "copy of job " + id + " starts";
    case choice_kind::copy_failure:
      return rank + "copy of job " + id + " fails from row "
           + std::to_string(what.row) + " on";
    case choice_kind::compute_start:
      return rank + "compute of step " + id + " starts";
    case choice_kind::compute_end:
      return "rank " + id + ": compute of step "
           + std::to_string(ranks_[what.subject].stream.front().step) + " ends";
    case choice_kind::outputs:
      return "engine takes results";
    case choice_kind::turn:
      return "engine goes on";
    case choice_kind::late_report:
      return "a report arrives that was held back";
    case choice_kind::idle_time:
      return "the idle delay passes";
    case choice_kind::deadline:
      return "the job deadline passes";
    case choice_kind::rank_death:
      return "rank " + id + " dies";
    case choice_kind::rank_return:
      return "rank " + id + " comes back";
    case choice_kind::whim:
      break;
  }
  return "whim " + id;
}

} // namespace kvtide::explore
