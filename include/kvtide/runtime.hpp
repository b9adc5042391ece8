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
class worker;
struct rank_home;
struct runtime_access;
struct wait_access;

/// Owns the actors, the devices and the host pools; none of them if
/// `options::host_bytes` is zero.
///
/// Every call returns at once with a ticket; what it leads to comes from `poll`
/// on the caller's thread. Calls take effect in call order (S1).
/// kvtide/blocking.hpp waits for answers, where an engine may.
///
/// Thread-safety: one thread at a time, the engine's; another one may take over
/// between two calls. `event_fd` and `wait` may be called on any thread. A call
/// on a second thread while a first is in one has no effect: it returns ticket
/// 0 and leads to `call_failed` with `ec::out_of_order` and ticket 0 (`poll`
/// returns nothing, `restart_rank` the error), and is counted in
/// `stats::order_errors`. Nothing guards the destructor and moves.
///
/// Wrong calls have no effect. Those with an answer, and `add`, `extend`,
/// `decline`, `allocate` with external tokens and `truncate`, say so with
/// `call_failed`; what is wrong in other calls, or in some rows of a list, is
/// left out, logged once per kind and counted in `stats::order_errors` (R10): a
/// finish that comes twice is no reason to end anything.
///
/// Blocking: only `start`, `wait` and the destructor block. Exceptions: none
/// cross this interface.
class runtime {
public:
  /// Validates `opts` and starts the actors. Blocks for milliseconds; with
  /// `device_kind::cuda` for as long as the driver needs to start.
  /// @returns `ec::invalid_options`, `ec::out_of_memory` if the host pool is
  ///          larger than the machine's memory or the system refuses threads,
  ///          or `ec::unsupported` if `device_kind::cuda` finds no GPU or this
  ///          build has no CUDA.
  static result<runtime> start(const options& opts);

  runtime(runtime&&) noexcept;
  runtime& operator=(runtime&&) noexcept;
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  /// Stops without waiting for jobs in flight; for a clean end call
  /// `shutdown` and wait for its answer first. Blocks until no copy is running,
  /// as memory would be freed under it: a copy that never ends blocks for ever.
  /// A process that has to end although `shutdown` named jobs that such a copy
  /// may belong to leaves by `std::_Exit` instead.
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
  /// Answered by `explain_answer`: what a lookup of a tracked request that has
  /// not finished would find now, and why no more. Changes nothing: it is no
  /// access (R12), counts as no use, and holds nothing. Costs two lookups, and
  /// a look at each chunk of the request.
  ticket_id explain(request_id request);

  /// The engine is about to give its GPU memory back. From this call on, until
  /// `wake`:
  /// * No store is planned. Tails of requests that finished before are planned
  ///   first, as by S13 (with `plan_delivery::by_engine` they are lost), and
  ///   stores that wait for a next step are handed over at once.
  /// * Every request has lost its blocks, as by a preemption (R3): after `wake`
  ///   it is scheduled as `row_kind::resumed` or `fresh`.
  /// * Lookups find nothing: 0 tokens, not "ask again". Open promises end.
  /// * Loads that no step has delivered fail, with `load_failed`; those in
  ///   flight end, and are announced.
  /// * `step`, and `allocate` with external tokens, fail with
  ///   `ec::out_of_order`; the step's number is not used up. All other calls
  ///   work; a request that finishes stores nothing.
  ///
  /// What the host pool has is kept. Answered by `call_done` as soon as no job
  /// is in flight, or at the deadline with the jobs that still are: the engine
  /// must not release the memory of their blocks before the ranks'
  /// `unregister_kv` was answered, which waits for every copy (G8). With no job
  /// in flight a rank still calls `unregister_kv` before its memory goes.
  ///
  /// Fails with `ec::out_of_order` while asleep.
  /// @param deadline From now; less than zero counts as zero.
  ticket_id sleep(std::chrono::milliseconds deadline);

  /// Ends `sleep`: from here on everything works, and lookups find what the
  /// host pool kept. Answered by `call_done`. A `sleep` that has no answer yet
  /// gets it first, with the jobs in flight.
  ///
  /// Every rank of this process has to have registered memory before, the same
  /// as ever or other one with the same references (see `rank::register_kv`):
  /// otherwise it fails with `ec::rank_unavailable`, names the rank, and the
  /// runtime sleeps on. Ranks of other processes join again when they can; until
  /// then nothing is found or stored.
  /// Fails with `ec::out_of_order` without `sleep`.
  ticket_id wake();

  /// Answered by `call_done` when no job is in flight, or at the deadline with
  /// the jobs that still are: what they would have stored is lost, and a load
  /// among them has no outcome yet. Comes in time whatever the devices do, with
  /// `device_kind::host_virtual` in simulated time.
  /// Requests that are tracked may go on meanwhile; further `add` and
  /// `shutdown` calls fail with `ec::shutting_down`.
  ticket_id shutdown(std::chrono::milliseconds deadline);

  /// Only with `device_kind::host_virtual`: moves simulated time to `now`.
  /// Answered by `call_done` after everything due by then was announced.
  /// @param now Nanoseconds since the start, not below what it was before and
  ///            below `never`.
  ticket_id advance(nanoseconds_t now);

  // -- what comes back --------------------------------------------------------

  /// Moves out all answers and notices that have arrived. Never blocks.
  [[nodiscard]] std::vector<engine_event> poll();

  /// Readable while `poll` has something to return, and now and then once more
  /// for nothing, if a `poll` was faster than the signal. Owned by the runtime.
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
  friend struct wait_access;    // For kvtide_await.
  struct impl;

  /// As `poll`, for a thread that waits: that is no call, so one that another
  /// thread makes meanwhile neither turns it away nor is turned away.
  /// @pre no other thread polls
  [[nodiscard]] std::vector<engine_event> poll_in_wait();

  explicit runtime(std::unique_ptr<impl> ptr) noexcept;
  std::unique_ptr<impl> impl_;
};

/// The side of the runtime that the process which owns a GPU sees: it registers
/// its KV memory and brackets each forward pass with two calls.
///
/// Thread-safety and blocking: as `runtime`, with the thread that enqueues the
/// compute of this rank. A call on a second thread while a first is in one
/// has no effect and leads to `rank_failed` with `ec::out_of_order`
/// (`make_event` and `record_event` return it, `poll` returns nothing), counted
/// in `rank_stats::order_errors`. `complete_event`, `event_fd` and `wait` may
/// be called on any thread.
class rank {
public:
  rank(const rank&) = delete;
  rank& operator=(const rank&) = delete;
  ~rank();

  /// Answered by `kv_registered`. The host pool is allocated here. With
  /// `device_kind::cuda` its pages are cleared, about a third of a second per
  /// GiB and thread (`cuda_options::prefault_threads`), and pinned: tens of
  /// seconds for hundreds of GiB.
  ///
  /// A rank that registers again, after `unregister_kv`, stays on its GPU and
  /// keeps its host pool with all content. Base addresses, strides and the
  /// number of blocks may be others; the references must say the same of
  /// groups, layers and bytes in the same order, as they give the bytes in the
  /// pool their meaning: otherwise `kv_registered::reason` is
  /// `ec::invalid_argument`.
  void register_kv(kv_memory memory);

  /// Answered by `kv_unregistered` once no copy can touch the memory (G8).
  /// Meanwhile, and until `register_kv` was answered, lookups find nothing and
  /// no store is planned.
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
  ///               computed in this step, or empty: then one is recorded here
  ///               behind each registered stream; if that fails, the call is
  ///               refused with `rank_failed` and has no effect. Copies that
  ///               wait for a handle which was never made fail: zero is such a
  ///               handle, not a complete one.
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
  friend class worker;
  friend struct rank_home;
  friend struct runtime_access; // For tests.
  friend struct wait_access;    // For kvtide_rank_await.
  struct impl;

  /// As `runtime::poll_in_wait`.
  [[nodiscard]] std::vector<rank_event> poll_in_wait();

  explicit rank(std::unique_ptr<impl> ptr) noexcept;
  std::unique_ptr<impl> impl_;
};

} // namespace kvtide
