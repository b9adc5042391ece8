// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/device_check.hpp"
#include "messages/device.hpp"
#include "messages/gpu_worker.hpp"

#include <caf/actor_cast.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <utility>

namespace kvtide::test {

struct instant_device_state {
  static inline const char* name = "instant-device";
};

/// A device with so many slots whose copies end at once, for measurements.
/// @param check is told the facts that the real device is told; may be null
inline device_actor::behavior_type
instant_device(device_actor::stateful_pointer<instant_device_state> self,
               std::uint64_t slots, core::device_check* check) {
  const auto worker = [self] {
    return caf::actor_cast<gpu_worker_actor>(self->current_sender());
  };
  return {
    [=](const msg::register_memory&) {
      self->send(worker(), msg::memory_registered{slots, 1, {}, {}});
    },
    [](const msg::unregister_memory&) {},
    [=](const msg::submit_jobs& x) {
      if (check != nullptr)
        check->submitted(x.jobs, x.computed);
      auto out = msg::copies_done{};
      for (const auto& work : x.jobs)
        out.jobs.push_back({work.id, true, 0, {}});
      self->send(worker(), std::move(out));
    },
    [=](const msg::make_fence& x) {
      if (check != nullptr)
        check->fenced(x.step, x.jobs, x.skipped);
      self->send(worker(), msg::fence_made{x.step, {}});
    },
    [=](const msg::device_tick&) {
      self->send(worker(), msg::device_ticked{never});
    },
    [](const msg::device_woke&) {},
  };
}

} // namespace kvtide::test
