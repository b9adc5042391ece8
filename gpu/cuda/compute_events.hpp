// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/error.hpp"
#include "kvtide/result.hpp"

#include "gpu/cuda/handles.hpp"
#include "gpu/host_event.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kvtide::gpu {

/// The events that say when compute of a step has ended: recorded by whoever
/// enqueues the compute, waited for by the streams that copy. As in
/// `host_event_table`, a handle is never reused: its event is, once it is
/// complete, under another generation, so an old handle stays "complete" and
/// nobody waits for work that came later (G2). All calls are safe from any
/// thread, and none blocks but for a lock held for one CUDA call.
class compute_events {
public:
  /// @param capacity events that may be pending at once, 1 to 65,536.
  /// @returns `ec::unsupported` without such a device or in a build without
  ///          CUDA, `ec::invalid_argument`, or `ec::out_of_memory`
  [[nodiscard]] static result<std::shared_ptr<compute_events>>
  make(int device, std::uint32_t capacity = 1'024);

  compute_events(const compute_events&) = delete;

  compute_events& operator=(const compute_events&) = delete;

  ~compute_events();

  /// Records an event behind all that is enqueued in `stream` now. The handle
  /// exists only once the record call has returned (G2).
  /// @returns a handle, never zero; or `ec::out_of_order` if the stream is
  ///          being captured (G6), `ec::out_of_memory` if `capacity` events are
  ///          pending, `ec::invalid_argument` if the stream is another
  ///          device's, `ec::device_failure`
  [[nodiscard]] result<std::uint64_t> record(std::uint64_t stream);

  /// Says whether work of a stream must not be mixed with ours now: copies that
  /// its compute waits for would become part of a graph (G6).
  /// @returns no error, or `ec::out_of_order` if one of them is being captured
  [[nodiscard]] error
  check_not_capturing(const std::vector<std::uint64_t>& streams) const;

  /// Whether `record` has made this handle. Asks nobody but itself.
  [[nodiscard]] bool knows(std::uint64_t handle) const;

  [[nodiscard]] event_state state(std::uint64_t handle) const;

  /// Makes `stream` wait for the event; a complete one holds nothing.
  /// @returns `ec::invalid_argument` if nobody made this handle
  [[nodiscard]] error wait(stream_handle stream, std::uint64_t handle) const;

  /// Leaks the events instead of giving them back: the context is gone (G7).
  void abandon();

private:
  struct impl;
  explicit compute_events(std::unique_ptr<impl> ptr) noexcept;
  std::unique_ptr<impl> impl_;
};

} // namespace kvtide::gpu
