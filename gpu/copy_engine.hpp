// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a device does, whoever makes the copies: threads or a GPU.

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/error.hpp"
#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include "gpu/named_pool_table.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kvtide::gpu {

/// One contiguous piece of a job.
struct fragment {
  void* dst = nullptr;
  const void* src = nullptr;
  std::uint64_t bytes = 0;
  /// Index in `job::rows` of the row that it belongs to; ascending in a job.
  std::uint32_t row = 0;
  /// Index in `kv_memory::tensors`: no copy may span two allocations (G5).
  std::uint32_t tensor = 0;
};

/// Says when the kernels of a step have ended.
struct compute_event {
  /// Real host engine: a handle of its `host_event_table`; a job behind one
  /// that was never made fails. Virtual engine: the simulated moment at which
  /// the compute ends. CUDA: an event of the event pool.
  std::uint64_t handle = 0;
};

/// One job as a batch of copies. The memory must stay valid until the job was
/// reported by `poll` or the engine is gone.
struct copy_job {
  job_id id = 0;
  /// A store writes its slots, a load reads them.
  job_kind kind = job_kind::store;
  /// May be empty; the job then still waits for its turn and is reported.
  std::vector<fragment> fragments;
  /// Host slots that the fragments touch.
  std::vector<slot_id> slots;
  /// Jobs that must have ended (done or failed) before this one starts. Ids
  /// that are not in flight count as ended.
  std::vector<job_id> after;
  /// Events that must be complete before this job starts (S6).
  std::vector<compute_event> after_events;
  /// What a store leaves in its slots, each once; read by
  /// `make_named_pool_engine` only.
  std::vector<slot_content> contents;
};

enum class copy_result : std::uint8_t {
  /// All bytes were copied.
  done,
  /// Not all bytes were copied, and no copy of this job is running any more.
  failed,
};

/// How one job ended. Every accepted job has exactly one.
struct completion {
  job_id job = 0;
  copy_result result = copy_result::done;
  /// If failed: rows before this one are complete.
  std::uint32_t first_failed_row = 0;
  /// Virtual engine: the simulated moment at which it ended; else zero.
  nanoseconds_t due = 0;
  /// Bytes that were copied, also if failed.
  std::uint64_t bytes = 0;
  /// Wall time that copying them took, whatever the clock: no waiting, and
  /// nothing that latency and bandwidth add.
  nanoseconds_t copy_ns = 0;
  /// If failed: one sentence for the log.
  std::string text;
};

/// Tells the owner that `poll` has something. Called from any of the engine's
/// threads, possibly more often than needed. It must not throw, must not call
/// the engine, and must not wait for whoever owns it (G1).
using wake_function = std::function<void()>;

/// Makes copies in the background. No call blocks. All calls come from one
/// thread at a time.
///
/// Order that every implementation keeps, besides `after` and `after_events`:
/// a store starts after all earlier jobs on its slots have ended, a load after
/// the last earlier store on its slots (S8). "Earlier" is the order of
/// `submit`, not of the ids.
///
/// With a virtual clock a sequence of `submit` and `advance` calls alone
/// decides what is announced, in which order, and which bytes are copied.
class copy_engine {
public:
  copy_engine() = default;

  copy_engine(const copy_engine&) = delete;

  copy_engine& operator=(const copy_engine&) = delete;

  /// Waits for the copies that are running at this moment, not for the queue.
  /// Jobs that were not reported yet never will be.
  virtual ~copy_engine();

  /// Takes a job over.
  /// @returns `ec::none`, or `ec::invalid_argument` if a job with this id is
  ///          in flight; the call then has no effect. All other trouble is
  ///          reported by `poll` as a failed job.
  [[nodiscard]] virtual ec submit(copy_job job) = 0;

  /// Binds a step to jobs. Ids that are not in flight count as ended, and a
  /// job that failed has ended too (S5).
  /// @returns what the compute stream waits for: a CUDA event or, with a
  /// virtual
  ///          clock, the simulated moment at which all jobs will have ended. If
  ///          empty, `poll` reports `step` once they have, one report per call.
  [[nodiscard]] virtual std::optional<fence>
  make_fence(step_id step, const std::vector<job_id>& jobs) = 0;

  /// Appends what ended since the last call, in the order in which it is to
  /// be announced. A fence is never reported before the jobs it waits for.
  virtual void poll(std::vector<completion>& done, std::vector<step_id>& fences)
    = 0;

  /// Virtual clock: starts to move simulated time to `now`, never backwards.
  /// All that is due by then is copied by the engine's threads and announced
  /// together once `advanced()` holds; `wake` tells when. A job submitted
  /// later waits for the next `advance`, even if it is due at once. Other
  /// engines: no effect.
  virtual void advance(nanoseconds_t now);

  /// Virtual clock: true if no thread has anything left to copy at this
  /// moment. The owner awaits it before the model writes or reads memory and
  /// before the next `submit` or `make_fence` after an `advance`. Other
  /// engines: always true.
  [[nodiscard]] virtual bool advanced() const;

  /// Virtual clock: the earliest simulated moment at which a copy starts or
  /// ends that no `advance` has covered yet, or `never`. Other engines:
  /// `never`.
  [[nodiscard]] virtual nanoseconds_t next_due() const;

  /// Jobs that were submitted and not yet reported by `poll`.
  [[nodiscard]] virtual std::size_t in_flight() const = 0;

  /// Why no job can succeed any more (G7), or no error while they can. All that
  /// were in flight have failed then.
  [[nodiscard]] virtual error lost() const {
    return {};
  }

  /// What is not as it was configured, a sentence each.
  [[nodiscard]] virtual std::vector<std::string> notes() const {
    return {};
  }
};

} // namespace kvtide::gpu
