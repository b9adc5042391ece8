// SPDX-License-Identifier: Apache-2.0

/// @file
/// The copies alone: for whoever decides himself what is stored and loaded, and
/// wants it moved fast and in a safe order. Link `kvtide::gpu`; it needs no
/// actors. This header needs no CUDA to compile.
///
/// A device is a number: a GPU as CUDA counts them, or `host_device`, plain
/// memory and threads in its place, so that the same program runs without a
/// GPU. Exceptions: none cross this interface.

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/cuda_options.hpp"
#include "kvtide/device_facts.hpp"
#include "kvtide/error.hpp"
#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"
#include "kvtide/kv_memory.hpp"
#include "kvtide/result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvtide::gpu {

/// The device that is none.
inline constexpr int host_device = -1;

// -- what there is ------------------------------------------------------------

/// Number of GPUs, at least 1. Safe from any thread. The first call may take
/// as long as the driver needs to start.
/// @returns `ec::unsupported` with a sentence that says why there is none: no
///          driver, no device that this process may see, or a build without
///          CUDA
[[nodiscard]] result<int> device_count();

/// What there is to know of a GPU. Safe from any thread.
/// @returns `ec::unsupported` if there is no such device, or
///          `ec::device_failure`
[[nodiscard]] result<device_facts> describe_device(int device);

// -- memory and streams -------------------------------------------------------

/// Owns memory of a device, for programs that have no allocator of their own.
/// Safe to read from any thread.
class device_memory {
public:
  /// Takes `bytes` bytes, at least 1, whose content is undefined. May wait for
  /// work of the device.
  /// @returns `ec::invalid_argument` if `bytes` is zero, `ec::out_of_memory`,
  ///          `ec::unsupported` if there is no such device, or
  ///          `ec::device_failure`
  [[nodiscard]] static result<device_memory> allocate(int device,
                                                      std::uint64_t bytes);

  device_memory(device_memory&&) noexcept;
  device_memory& operator=(device_memory&&) noexcept;
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;

  /// Gives it back, after all work of the device that is enqueued. If it was
  /// registered, no copy may touch it any more.
  ~device_memory();

  /// Its first byte; only a `host_device`'s may be read and written here.
  [[nodiscard]] std::byte* data() const noexcept;

  [[nodiscard]] std::uint64_t bytes() const noexcept;

  /// For `kv_tensor::kind`.
  [[nodiscard]] memory_kind kind() const noexcept;

private:
  struct impl;
  explicit device_memory(std::unique_ptr<impl> ptr) noexcept;
  std::unique_ptr<impl> impl_;
};

/// Owns a stream, for programs that have none of their own. Work runs in the
/// order in which it was enqueued, and beside that of other streams, the
/// default one included. On `host_device` everything is over before a call
/// returns.
///
/// Thread-safety: one thread at a time. Only `synchronize` and the destructor
/// block, and copies if the host memory is not pinned.
class compute_stream {
public:
  /// @returns `ec::unsupported` if there is no such device, or
  ///          `ec::device_failure`
  [[nodiscard]] static result<compute_stream> make(int device);

  compute_stream(compute_stream&&) noexcept;
  compute_stream& operator=(compute_stream&&) noexcept;
  compute_stream(const compute_stream&) = delete;
  compute_stream& operator=(const compute_stream&) = delete;

  /// What is enqueued still runs; `synchronize` waits for it.
  ~compute_stream();

  /// Enqueues a copy from host memory to memory of the device. Both must stay
  /// until it is over; `source` must not be written before that.
  /// @returns `ec::device_failure`
  [[nodiscard]] error copy_to_device(void* destination, const void* source,
                                     std::uint64_t bytes);

  /// The opposite way: `destination` holds the bytes once `synchronize` has
  /// returned.
  /// @returns `ec::device_failure`
  [[nodiscard]] error copy_to_host(void* destination, const void* source,
                                   std::uint64_t bytes);

  /// Lets all that is enqueued from here on wait for the copies behind a fence
  /// (S5). Call it before the fence of a later step is made, and before the
  /// memory is unregistered (G2).
  /// @returns `ec::invalid_argument` if the fence is not one of this device,
  ///          or `ec::device_failure`
  [[nodiscard]] error wait(const fence& until);

  /// Blocks until all that was enqueued is over.
  /// @returns `ec::device_failure`, also for work enqueued before
  [[nodiscard]] error synchronize();

  /// A `cudaStream_t` as a number, for `kv_memory::streams` and
  /// `copier::record`. Zero on `host_device`.
  [[nodiscard]] std::uint64_t handle() const noexcept;

private:
  struct impl;
  explicit compute_stream(std::unique_ptr<impl> ptr) noexcept;
  std::unique_ptr<impl> impl_;
};

// -- host pools that outlive their process ------------------------------------

/// Removes the pool that `options::pool_name` names for one rank, and with it
/// the chunks in it. It stays until somebody does so, or the machine is started
/// again. None is no error. Safe from any thread.
/// @returns `ec::out_of_order` if a process has the pool, `ec::invalid_options`
///          if the name is none or the file is another user's, or
///          `ec::unsupported` if the system refuses
[[nodiscard]] error remove_named_pool(const std::string& name, rank_id rank);

// -- copies -------------------------------------------------------------------

/// Configures one copier. Read by `copier::start`.
struct copier_options {
  int device = host_device;

  /// KV groups, 1 to 1,024; see `kv_reference::group`.
  std::uint32_t groups = 1;

  /// Blocks per chunk, the same for all groups, at least 1.
  std::uint32_t blocks_per_chunk = 8;

  /// Host pool in bytes, rounded down to whole slots once `register_kv` has
  /// said how large a chunk is. Required.
  std::uint64_t host_bytes = 0;

  /// Called when `poll` may have something, possibly more often than needed,
  /// from any thread, the driver's included. It must not throw, not call the
  /// copier, not call CUDA and not wait for whoever uses the copier (G1). May
  /// be empty.
  std::function<void()> wake;

  /// `host_device`: threads per direction, 1 to 256. Jobs are dealt out in
  /// turn.
  std::uint32_t host_threads = 1;

  /// A GPU.
  cuda_options cuda;
};

/// What `copier::register_kv` led to.
struct registered_kv {
  /// Slots 0 to `slots - 1` may be named by jobs.
  std::uint32_t slots = 0;
  /// Bytes of one slot: the largest chunk of any group, rounded up to 64.
  std::uint64_t slot_bytes = 0;
  /// What the log should say of the pool, one sentence each: how it was taken,
  /// and what was asked for and could not be had.
  std::vector<std::string> notes;
};

/// How one job ended; each that was accepted has exactly one.
struct copy_report {
  job_id job = 0;
  /// `done`, or `failed`: not all bytes were copied, and no copy of this job is
  /// running any more.
  job_status status = job_status::done;
  /// If failed: rows before this one are complete.
  std::uint32_t first_failed_row = 0;
  /// Bytes that were copied, also if failed.
  std::uint64_t bytes = 0;
  /// How long that took, without waiting.
  std::chrono::nanoseconds copy_time{0};
  /// If failed: one sentence for the log.
  std::string text;
};

/// What has happened since the last `copier::poll`.
struct copier_news {
  /// In the order in which they ended.
  std::vector<copy_report> jobs;
  /// Steps whose `make_fence` had no value: compute may be enqueued now.
  std::vector<step_id> fences;
  /// No copy can touch the memory any more: `unregister_kv` is over.
  bool unregistered = false;
};

/// Copies between the KV memory of one device and a host pool of its own.
///
/// Besides what a call asks for, a store starts after all earlier jobs on its
/// slots have ended, a load after the last earlier store on its slots (S8).
/// "Earlier" is the order of `submit`. What blocks hold is the caller's to
/// order: with `events`, `after` and fences.
///
/// Thread-safety: one thread at a time; `record`, `make_event` and
/// `complete_event` are safe from any thread while the copier lives and is not
/// moved. Blocking: only `start`, `register_kv`, `wait` and the destructor.
class copier {
public:
  /// Checks the options and the device.
  /// @returns `ec::invalid_options`, `ec::unsupported` if there is no such
  ///          device, or `ec::device_failure`
  [[nodiscard]] static result<copier> start(copier_options opts);

  copier(copier&&) noexcept;
  copier& operator=(copier&&) noexcept;
  copier(const copier&) = delete;
  copier& operator=(const copier&) = delete;

  /// Waits for the copies that are running, not for jobs that wait. Jobs that
  /// were not reported yet never will be.
  ~copier();

  // -- memory -----------------------------------------------------------------

  /// Takes the memory that jobs name, which must stay valid and mapped until
  /// `copier_news::unregistered`. The first call also takes the host pool;
  /// later ones find it and what lies in it. For a GPU its pages are cleared,
  /// about a third of a second per GiB and thread, and pinned: tens of seconds
  /// for hundreds of GiB. `rank`, `writer`, `writers` and `model_fingerprint`
  /// have no meaning here, nor have `device` and `streams` on `host_device`. On
  /// a GPU `streams` are checked and may be empty: `record` names its stream.
  /// @returns `ec::out_of_order` if memory is registered;
  /// `ec::invalid_argument`
  ///          with a sentence that names the tensor, reference or stream, or if
  ///          the pool holds chunks of another form; `ec::unsupported` if a
  ///          tensor's memory is not of this device's kind;
  ///          `ec::invalid_options` if not one slot fits into `host_bytes`;
  ///          `ec::out_of_memory`, `ec::device_failure`
  [[nodiscard]] result<registered_kv> register_kv(const kv_memory& memory);

  /// No more jobs. `poll` says when those in flight have ended.
  /// @returns `ec::out_of_order` if no memory is registered
  [[nodiscard]] error unregister_kv();

  // -- events -----------------------------------------------------------------

  /// Records what is enqueued on a compute stream now, for jobs that must not
  /// start before it is over (S6). On `host_device` nothing is ever enqueued,
  /// and the event is over at once.
  /// @param stream a `cudaStream_t` as a number
  /// @returns a handle, never zero and never reused; `ec::out_of_order` if the
  ///          stream is being captured into a graph (G6), `ec::out_of_memory`
  ///          if 1,024 events are pending, `ec::invalid_argument` if the stream
  ///          is another device's, `ec::device_failure`
  [[nodiscard]] result<std::uint64_t> record(std::uint64_t stream);

  /// `host_device` only: an event for compute that runs on threads, to be given
  /// to `complete_event` exactly once.
  /// @returns `ec::out_of_memory` if 1,024 events are pending, or
  ///          `ec::unsupported` on a GPU
  [[nodiscard]] result<std::uint64_t> make_event();
  void complete_event(std::uint64_t handle);

  // -- jobs -------------------------------------------------------------------

  /// Starts a job in the background; `poll` reports it. A row's group is
  /// `row.key.group`; the rest of the key, `chunk` and `request` have no
  /// meaning here.
  /// @param events from `record` or `make_event`: it starts behind all of them.
  ///               One that nobody made lets the job fail.
  /// @param after jobs: it starts once they have ended, done or failed. Those
  ///              that are not in flight have.
  /// @returns an error if nothing was started: `ec::out_of_order` if no memory
  ///          is registered, `ec::invalid_argument` if a job with this id is in
  ///          flight or with a sentence that names the row that lies outside
  ///          the memory or the pool, or what `lost` says
  [[nodiscard]] error submit(const job& what,
                             const std::vector<std::uint64_t>& events = {},
                             const std::vector<job_id>& after = {});

  /// Says what compute of a step has to wait for before it may touch the
  /// blocks of these jobs (S5). Jobs that are not in flight hold nothing back;
  /// one that fails ends like the others, so look at its report before the
  /// blocks of a load are read.
  /// @param step ascending
  /// @returns a fence for `compute_stream::wait` or `cudaStreamWaitEvent`,
  ///          valid until `make_fence` of a later step or until
  ///          `copier_news::unregistered` (G2); streams that were told to wait
  ///          before that do wait. Without value: `poll` names the step once
  ///          compute may be enqueued.
  [[nodiscard]] std::optional<fence>
  make_fence(step_id step, const std::vector<job_id>& jobs);

  /// What has ended since the last call. A fence never comes before the jobs
  /// it waits for.
  [[nodiscard]] copier_news poll();

  /// Blocks until `poll` may have something, then forgets that it may.
  /// @returns false if `timeout` passed first
  [[nodiscard]] bool wait(std::chrono::milliseconds timeout) const;

  /// Jobs that were accepted and not reported yet.
  [[nodiscard]] std::size_t in_flight() const;

  /// Why no job can succeed any more, or no error while they can. A GPU's
  /// context is gone then: the process has to start again, and what the copier
  /// holds of it is leaked (G7).
  [[nodiscard]] error lost() const;

private:
  struct impl;
  explicit copier(std::unique_ptr<impl> ptr) noexcept;
  std::unique_ptr<impl> impl_;
};

} // namespace kvtide::gpu
