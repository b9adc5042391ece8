// SPDX-License-Identifier: Apache-2.0

/// @file
/// One worker between a scheduler, a rank side and a device that only listen.

#pragma once

#include "actors/gpu_worker.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/breach_ear.hpp"
#include "tests/support/listen.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kvtide::test {

using ids = std::vector<job_id>;

// -- neighbours ---------------------------------------------------------------

struct fake_state {
  static inline const char* name = "fake";
};

struct scheduler_log {
  std::vector<msg::worker_ready> ready;
  std::vector<msg::worker_left> left;
  std::vector<msg::transfer_done> reports;
  std::vector<msg::ticked> ticks;
  std::vector<msg::steps_taken> taken;
  /// See `seat`.
  step_id first_planned = 0;
  /// Does not answer `worker_ready`.
  bool keeps_waiting = false;
};

inline scheduler_worker_port::behavior_type
fake_scheduler(scheduler_worker_port::stateful_pointer<fake_state> self,
               scheduler_log* log) {
  return listen<scheduler_worker_port>(
    [=](const msg::worker_ready& x) {
      log->ready.push_back(x);
      if (x.remote && !log->keeps_waiting)
        self->send(caf::actor_cast<gpu_worker_actor>(self->current_sender()),
                   msg::seat{x.call, {}, log->first_planned});
    },
    [=](const msg::worker_left& x) { log->left.push_back(x); },
    [=](const msg::transfers_done& x) {
      log->reports.insert(log->reports.end(), x.reports.begin(),
                          x.reports.end());
    },
    [=](const msg::ticked& x) { log->ticks.push_back(x); },
    [=](const msg::steps_taken& x) { log->taken.push_back(x); });
}

struct rank_log {
  std::vector<kv_registered> registered;
  std::size_t unregistered = 0;
  std::vector<step_ready> ready;
  std::vector<rank_failed> failures;
  std::vector<rank_stats> stats;
};

inline rank_side_actor::behavior_type
fake_rank_side(rank_side_actor::stateful_pointer<fake_state>, rank_log* log) {
  return {
    [=](const kv_registered& x) { log->registered.push_back(x); },
    [=](const kv_unregistered&) { ++log->unregistered; },
    [=](const step_ready& x) { log->ready.push_back(x); },
    [=](const rank_failed& x) { log->failures.push_back(x); },
    [=](const rank_stats& x) { log->stats.push_back(x); },
  };
}

using device_request
  = std::variant<msg::register_memory, msg::unregister_memory, msg::submit_jobs,
                 msg::make_fence, msg::device_tick>;

/// In the order of arrival.
using device_log = std::vector<device_request>;

inline device_actor::behavior_type
fake_device(device_actor::stateful_pointer<fake_state>, device_log* log) {
  return {
    [=](const msg::register_memory& x) { log->emplace_back(x); },
    [=](const msg::unregister_memory& x) { log->emplace_back(x); },
    [=](const msg::submit_jobs& x) { log->emplace_back(x); },
    [=](const msg::make_fence& x) { log->emplace_back(x); },
    [=](const msg::device_tick& x) { log->emplace_back(x); },
    [](const msg::device_woke&) {},
  };
}

// -- short forms --------------------------------------------------------------

inline std::vector<job> jobs_of(job_kind kind, const ids& numbers) {
  std::vector<job> result;
  for (const auto id : numbers) {
    job added;
    added.id = id;
    added.kind = kind;
    result.push_back(std::move(added));
  }
  return result;
}

inline msg::begin_step begin(step_id step, const ids& loads = {},
                             const ids& flushed = {}, const ids& flush = {}) {
  return {step, jobs_of(job_kind::load, loads),
          jobs_of(job_kind::store, flushed), flush};
}

inline msg::stores stores(step_id step, const ids& numbers) {
  return {step, jobs_of(job_kind::store, numbers)};
}

inline std::string list(const ids& numbers) {
  std::string result;
  for (const auto id : numbers) {
    result += " ";
    result += std::to_string(id);
  }
  return result;
}

inline std::string text_of(const device_request& what) {
  struct visitor {
    std::string operator()(const msg::register_memory&) {
      return "register";
    }
    std::string operator()(const msg::unregister_memory&) {
      return "unregister";
    }
    std::string operator()(const msg::submit_jobs& x) {
      ids numbers;
      for (const auto& y : x.jobs)
        numbers.push_back(y.id);
      auto result = "submit" + list(numbers);
      if (!x.after.empty())
        result += " after" + list(x.after);
      if (!x.events.empty())
        result += " events" + list(x.events);
      return result;
    }
    std::string operator()(const msg::make_fence& x) {
      return "fence" + list(x.jobs);
    }
    std::string operator()(const msg::device_tick& x) {
      return "tick " + std::to_string(x.now);
    }
  };
  return std::visit(visitor{}, what);
}

inline std::string text_of(const msg::transfer_done& x) {
  static constexpr const char* names[] = {"done", "failed", "late", "drained"};
  auto result = std::to_string(x.job) + " " + names[static_cast<int>(x.status)];
  if (x.first_failed_row > 0)
    result += " from " + std::to_string(x.first_failed_row);
  return result;
}

// -- fixture ------------------------------------------------------------------

class worker_fixture : public actor_fixture {
protected:
  worker_fixture() {
    config.rank = 3;
    config.incarnation = 7;
    config.job_deadline = std::chrono::seconds{1};
    config.idle_delay = std::chrono::milliseconds{5};
    config.model_fingerprint = "model";
    memory.rank = 3;
    memory.model_fingerprint = "model";
    config.on_breach = ear.listener();
  }

  /// With memory registered.
  void start() {
    spawn();
    tell(msg::register_kv{memory});
    tell(msg::memory_registered{10, 4'096, {}, {}});
    asked.clear();
  }

  void spawn() {
    target = world.spawn(fake_device, &asked);
    boss = world.spawn(fake_scheduler, &told);
    uut = world.spawn(gpu_worker, config, target, boss,
                      world.spawn(fake_rank_side, &rank));
  }

  template <class Message>
  void tell(Message message) {
    world.send(uut, std::move(message));
    world.run();
  }

  /// A whole step without a flush.
  void run_step(msg::begin_step plan, compute_events events = {}) {
    const auto step = plan.step;
    tell(std::move(plan));
    tell(msg::end_step{step, std::move(events)});
  }

  /// What the device was asked since the last call.
  std::vector<std::string> take_asked() {
    std::vector<std::string> result;
    for (const auto& x : std::exchange(asked, {}))
      result.push_back(text_of(x));
    return result;
  }

  /// What was reported since the last call.
  std::vector<std::string> take_reports() {
    std::vector<std::string> result;
    for (const auto& x : std::exchange(told.reports, {}))
      result.push_back(text_of(x));
    return result;
  }

  /// Steps that became ready since the last call.
  std::vector<step_id> take_ready() {
    std::vector<step_id> result;
    for (const auto& x : std::exchange(rank.ready, {}))
      result.push_back(x.step);
    return result;
  }

  gpu_worker_state& state() {
    return state_of<gpu_worker_state>(uut);
  }

  breach_ear ear;
  gpu_worker_config config;
  kv_memory memory;
  scheduler_log told;
  rank_log rank;
  device_log asked;
  device_actor target;
  scheduler_worker_port boss;
  gpu_worker_actor uut;
};

} // namespace kvtide::test
