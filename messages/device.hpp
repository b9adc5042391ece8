// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a device understands. One device belongs to one worker, which is the
/// only sender apart from the device's own copy threads.

#pragma once

#include "messages/fwd.hpp"

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <optional>
#include <vector>

namespace kvtide::msg {

/// Takes the KV memory into use and allocates the host pool. Answered by
/// `memory_registered`.
struct register_memory {
  kv_memory memory;
};

/// Answered by `memory_unregistered` once no copy can touch the memory.
struct unregister_memory {};

/// Copies to start, in this order where they meet on a slot (S8).
struct submit_jobs {
  std::vector<job> jobs;
  /// Jobs that must have ended before any of `jobs` starts (S5).
  std::vector<job_id> after;
  /// Compute that must have ended before any of `jobs` starts (S6).
  compute_events events;
  /// The step whose compute that is; none before the first has ended.
  std::optional<step_id> computed = std::nullopt;
};

/// Asks for what compute of `step` must wait for. A job that is not in flight
/// counts as ended (S4). Answered by `fence_made`.
struct make_fence {
  step_id step = 0;
  std::vector<job_id> jobs;
  /// Jobs up to this one that were not submitted never will be: the worker has
  /// ended them by itself.
  std::optional<job_id> skipped = std::nullopt;
};

/// Asks what has ended by `now`; simulated time moves there. Answered by
/// `device_ticked` after all of it was announced, whether or not anything woke
/// the device (G1).
struct device_tick {
  nanoseconds_t now = 0;
};

/// From a copy thread: something ended, ask the engine what (G1).
struct device_woke {};

} // namespace kvtide::msg

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::register_memory)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::unregister_memory)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::submit_jobs)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::make_fence)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::device_tick)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::device_woke)

namespace kvtide {

/// Owns streams and host buffers of one GPU, or their host stand-in.
using device_actor = caf::typed_actor<
  caf::reacts_to<msg::register_memory>, caf::reacts_to<msg::unregister_memory>,
  caf::reacts_to<msg::submit_jobs>, caf::reacts_to<msg::make_fence>,
  caf::reacts_to<msg::device_tick>, caf::reacts_to<msg::device_woke>>;

} // namespace kvtide
