// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/driver_rank.hpp"

#include "kvtide/error.hpp"

#include <caf/actor_cast.hpp>

#include <utility>

namespace kvtide::conformance {

namespace {

std::string text_of(const error& reason) {
  return std::string{to_string(reason.code)} + ": " + reason.text;
}

} // namespace

device_actor::behavior_type
driver_device(device_actor::stateful_pointer<driver_device_state> self,
              std::shared_ptr<rank_log> log) {
  const auto answer = [self](auto message) {
    self->send(caf::actor_cast<gpu_worker_actor>(self->current_sender()),
               std::move(message));
  };
  return {
    [log, answer](const msg::register_memory&) {
      answer(msg::memory_registered{log->slots, 1, {}, {}});
    },
    [answer](const msg::unregister_memory&) {
      answer(msg::memory_unregistered{});
    },
    [log](msg::submit_jobs& x) { log->orders.emplace_back(std::move(x)); },
    [log, answer](msg::make_fence& x) {
      answer(msg::fence_made{x.step, {fence::kind_t::event, x.step}});
      log->orders.emplace_back(std::move(x));
    },
    [log](const msg::device_tick&) {
      log->problems.emplace_back("the device got a tick of simulated time");
    },
    [log](const msg::device_woke&) {
      log->problems.emplace_back("the device was woken by nobody");
    },
  };
}

rank_side_actor::behavior_type
driver_rank_side(rank_side_actor::stateful_pointer<driver_rank_side_state>,
                 std::shared_ptr<rank_log> log) {
  return {
    [log](const kv_registered& x) {
      log->registered = x.reason.code == ec::none;
      if (!log->registered)
        log->problems.push_back("the memory was refused: " + text_of(x.reason));
    },
    [log](const kv_unregistered&) { log->registered = false; },
    [log](const step_ready& x) { log->ready.push_back(x.step); },
    [log](const rank_failed& x) {
      log->problems.push_back("the rank side heard " + text_of(x.reason));
    },
    [](const rank_stats&) {},
  };
}

} // namespace kvtide::conformance
