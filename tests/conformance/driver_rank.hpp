// SPDX-License-Identifier: Apache-2.0

/// @file
/// The driver's side of one rank: a device that copies nothing and ends jobs
/// when the replay says so, and the process that owns the GPU.

#pragma once

#include "messages/device.hpp"
#include "messages/gpu_worker.hpp"
#include "messages/rank_side.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace kvtide::conformance {

/// What both sides of one rank have heard and nobody has taken yet.
struct rank_log {
  using device_order = std::variant<msg::submit_jobs, msg::make_fence>;

  /// Slots that the device says it has.
  std::uint64_t slots = 0;

  /// What the device was asked to do, in order.
  std::vector<device_order> orders;

  /// Steps whose compute may start.
  std::vector<step_id> ready;

  /// The memory was accepted.
  bool registered = false;

  /// Complaints of the worker, and what nobody should have said.
  std::vector<std::string> problems;
};

struct driver_device_state {
  static inline const char* name = "driver-device";
};

/// Plays a device. A fence is given at once, as one that the compute stream
/// waits for.
device_actor::behavior_type
driver_device(device_actor::stateful_pointer<driver_device_state> self,
              std::shared_ptr<rank_log> log);

struct driver_rank_side_state {
  static inline const char* name = "driver-rank-side";
};

/// Plays the process that owns the GPU.
rank_side_actor::behavior_type
driver_rank_side(rank_side_actor::stateful_pointer<driver_rank_side_state> self,
                 std::shared_ptr<rank_log> log);

} // namespace kvtide::conformance
