// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <vector>

namespace kvtide::gpu {

enum class event_state : std::uint8_t {
  pending,
  complete,
  /// This table never made such a handle.
  unknown,
};

/// A bounded set of one-shot events in the role of CUDA events. A handle is
/// never reused: its place is, as soon as the event is complete, under another
/// generation, so that an old handle stays "complete" for ever (G2). Handle
/// zero is unknown: it is what a caller has who never made an event. All calls
/// are safe from any thread; only `wait` blocks.
class host_event_table {
public:
  /// @param capacity events that may be pending at once.
  explicit host_event_table(std::uint32_t capacity = 1'024);

  /// Makes a pending event.
  /// @returns a handle, never zero, or `ec::out_of_memory` if `capacity` events
  ///          are pending.
  [[nodiscard]] result<std::uint64_t> create();

  /// Marks an event complete and lets all that wait for it go on.
  /// @returns false if it was complete already or is unknown.
  bool complete(std::uint64_t handle);

  [[nodiscard]] event_state state(std::uint64_t handle) const;

  /// Blocks until the event is complete.
  /// @returns false if stopped before, or if the handle is unknown.
  [[nodiscard]] bool wait(std::uint64_t handle, std::stop_token stop);

  /// Number of pending events.
  [[nodiscard]] std::uint32_t pending() const;

private:
  struct place {
    std::uint32_t generation = 0;
    bool pending = false;
  };

  [[nodiscard]] event_state state_locked(std::uint64_t handle) const;

  mutable std::mutex mutex_;
  std::condition_variable_any completed_;
  std::vector<place> places_;
  std::vector<std::uint32_t> free_;
};

} // namespace kvtide::gpu
