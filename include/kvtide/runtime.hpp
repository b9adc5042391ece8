// SPDX-License-Identifier: Apache-2.0

/// @file
/// Start here: an engine reaches the whole library through `kvtide::runtime`,
/// and the process that owns a GPU through `kvtide::rank`. This header needs
/// neither CAF nor CUDA to compile.

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/calls.hpp"
#include "kvtide/kv_memory.hpp"
#include "kvtide/options.hpp"
#include "kvtide/result.hpp"

#include <chrono>
#include <memory>
#include <vector>

namespace kvtide {

class rank;
struct runtime_access;

/// Owns the actors, the devices and the host pools; none of them if
/// `options::host_bytes` is zero.
///
/// Every call returns at once with a ticket; what it leads to comes from `poll`
/// on the caller's thread. Calls take effect in call order (S1).
///
/// Thread-safety: one thread at a time, the engine's. Blocking: only `start`,
/// `wait` and the destructor block. Exceptions: none cross this interface.
class runtime {
public:
  /// Validates `opts` and starts the actors. Blocks for milliseconds; with
  /// `device_kind::cuda` for as long as the driver needs to start.
  /// @returns `ec::invalid_options`, `ec::out_of_memory` if the host pool is
  ///          larger than the machine's memory, or `ec::unsupported` if
  ///          `device_kind::cuda` finds no GPU or this build has no CUDA.
  static result<runtime> start(const options& opts);

  runtime(runtime&&) noexcept;
  runtime& operator=(runtime&&) noexcept;
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  /// Stops without waiting for jobs in flight; for a clean end call
  /// `shutdown` and wait for its answer first. Blocks until no copy is running.
  ~runtime();

  // -- requests ---------------------------------------------------------------

  ticket_id add(add_request call);
  ticket_id extend(extend_keys call);
  /// Answered by `lookup_answer`.
  ticket_id lookup(std::vector<lookup_row> rows);
  /// Ends a promise without a load. An unknown promise is `call_failed` with
  /// `ec::unknown_promise`.
  ticket_id decline(promise_id promise);
  ticket_id allocate(allocated call);
  /// Answered by `finish_answer`.
  ticket_id finish(finish_call call);
  ticket_id truncate(truncate_call call);

  // -- steps ------------------------------------------------------------------

  /// Answered by `step_plan`.
  ticket_id step(step_call call);
  ticket_id outputs(outputs_call call);

  // -- the whole cache --------------------------------------------------------

  /// Forgets all cached content. Answered by `call_done`.
  ticket_id reset();
  /// Answered by `events_answer`; empty without `options::cache_events`.
  ticket_id take_events();
  /// Answered by `stats_answer`.
  ticket_id get_stats();
  /// Answered by `call_done` when no job is in flight, or at the deadline with
  /// the jobs that still are. Requests that are tracked may go on meanwhile;
  /// further `add` and `shutdown` calls fail with `ec::shutting_down`.
  ticket_id shutdown(std::chrono::milliseconds deadline);

  /// Only with `device_kind::host_virtual`: moves simulated time to `now`.
  /// Answered by `call_done` after everything due by then was announced.
  /// @param now Nanoseconds since the start, not below what it was before and
  ///            below `never`.
  ticket_id advance(nanoseconds_t now);

  // -- what comes back --------------------------------------------------------

  /// Moves out all answers and notices that have arrived. Never blocks.
  [[nodiscard]] std::vector<engine_event> poll();

  /// Readable while `poll` has something to return. Owned by the runtime.
  [[nodiscard]] int event_fd() const noexcept;

  /// Blocks until `poll` has something to return.
  /// @returns false if `timeout` passed first.
  [[nodiscard]] bool wait(std::chrono::milliseconds timeout) const;

  // -- the rank side ----------------------------------------------------------

  /// Starts a rank of this process again that has died: after `rank_failed`
  /// with `ec::rank_unavailable` and the `kv_unregistered` behind it. Its
  /// `register_kv` comes next. Takes effect at once.
  /// @returns `ec::out_of_order` if the rank lives or one of its copies runs,
  ///          `ec::shutting_down` if the scheduler is gone,
  ///          `ec::device_failure` if its CUDA context is gone: no other one
  ///          can be had in this process (G7). Ranks on other GPUs live on
  ///          meanwhile.
  [[nodiscard]] error restart_rank(rank_id id);

  /// The rank side of a rank in this process, to be used by the thread that
  /// enqueues its compute. Valid while the runtime lives.
  /// @pre `id < options::ranks`
  [[nodiscard]] rank& local_rank(rank_id id);

private:
  friend struct runtime_access; // For tests.
  struct impl;
  explicit runtime(std::unique_ptr<impl> ptr) noexcept;
  std::unique_ptr<impl> impl_;
};

/// The side of the runtime that the process which owns a GPU sees: it registers
/// its KV memory and brackets each forward pass with two calls.
///
/// Thread-safety and blocking: as `runtime`, with the thread that enqueues the
/// compute of this rank.
class rank {
public:
  rank(const rank&) = delete;
  rank& operator=(const rank&) = delete;
  ~rank();

  /// Answered by `kv_registered`. The host pool is allocated here; with
  /// `device_kind::cuda` it is pinned too, which takes seconds for a large one.
  /// A rank that registers again stays on its GPU.
  void register_kv(kv_memory memory);

  /// Answered by `kv_unregistered` once no copy can touch the memory.
  void unregister_kv();

  /// Asks for `step_ready` of a step. With `plan_delivery::by_engine`, `plan`
  /// is the `step_plan::bytes` of that step; otherwise it stays empty. While a
  /// registered stream is being captured into a CUDA graph the call is refused
  /// with `rank_failed`, `ec::out_of_order`, and has no effect: what compute
  /// waits for must not become part of a graph (G6). A graph is launched in a
  /// step, and captured outside of one.
  void begin_step(step_id step, std::string plan = {});

  /// Says that compute of the step is enqueued. Every step needs one, also an
  /// empty one.
  /// @param events What completes when the compute does. On `device_kind::host`
  ///               handles from `make_event`, or empty if the compute is over;
  ///               on `host_virtual` simulated moments in nanoseconds; on
  ///               `cuda` one handle from `record_event` for each stream that
  ///               computed in this step, or empty if all compute is over.
  ///               Copies
  ///               that wait for a handle which was never made fail: zero is
  ///               such a handle, not a complete one.
  void end_step(step_id step, compute_events events);

  /// Answered by `rank_stats`.
  void get_stats();

  /// Only with `device_kind::host`: a handle for `end_step`, to be given to
  /// `complete_event` exactly once, from any thread.
  /// @returns `ec::out_of_memory` if 1,024 events are pending: complete some
  ///          before the step ends; `ec::unsupported` with `device_kind::cuda`.
  [[nodiscard]] result<std::uint64_t> make_event();
  /// Without effect if `make_event` did not give this handle.
  void complete_event(std::uint64_t handle);

  /// Only with `device_kind::cuda`, and only once `kv_registered` came: a
  /// handle for `end_step` that stands for everything enqueued in `stream` so
  /// far, a drafter's kernels included (S6). May be called several times per
  /// step. Costs two or three CUDA calls.
  /// @param stream a `cudaStream_t` of the rank's GPU
  /// @returns a handle, never zero; `ec::unsupported` with other devices,
  ///          `ec::out_of_order` without memory or while the stream is being
  ///          captured, `ec::out_of_memory` if 1,024 events are pending,
  ///          `ec::invalid_argument` or `ec::device_failure` as CUDA says
  [[nodiscard]] result<std::uint64_t> record_event(std::uint64_t stream);

  [[nodiscard]] std::vector<rank_event> poll();
  [[nodiscard]] int event_fd() const noexcept;
  [[nodiscard]] bool wait(std::chrono::milliseconds timeout) const;

private:
  friend class runtime;
  friend struct runtime_access; // For tests.
  struct impl;
  explicit rank(std::unique_ptr<impl> ptr) noexcept;
  std::unique_ptr<impl> impl_;
};

} // namespace kvtide
