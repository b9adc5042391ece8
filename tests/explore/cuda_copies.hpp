// SPDX-License-Identifier: Apache-2.0

/// @file
/// The CUDA engine of a rank, on a machine whose every next half of an
/// operation is somebody's choice.

#pragma once

#include "gpu/copy_fault.hpp"
#include "gpu/cuda/compute_events.hpp"
#include "gpu/cuda/device_buffer.hpp"
#include "gpu/cuda/pool_registration.hpp"
#include "gpu/cuda/stream.hpp"
#include "tests/explore/choice.hpp"
#include "tests/explore/copy_desk.hpp"
#include "tests/explore/copy_way.hpp"
#include "tests/explore/findings.hpp"
#include "tests/gpu/cuda_stand_in/machine.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kvtide::explore {

/// Begins a run: a machine of which nothing is left from the last one.
/// @param devices at least one for each rank and each loss of a context
void start_cuda_machine(int devices);

/// One device of the machine: the rank's memory, the stream of its compute, and
/// the copies of the engine that is open, if any. Stays from one life of a rank
/// to the next unless its context was lost.
///
/// What moves is known from the operations in the device's streams, not from
/// the engine: a copy starts with its first piece, and ends with the last of
/// all its bytes. So an engine that says too early that a job has ended is
/// found out.
class cuda_copies {
public:
  /// @param kv_bytes of the rank's memory
  cuda_copies(rank_id rank, int device, const copy_way& way,
              std::uint64_t kv_bytes, copy_watcher& watcher, findings& found);

  cuda_copies(const cuda_copies&) = delete;

  cuda_copies& operator=(const cuda_copies&) = delete;

  ~cuda_copies();

  /// Where the rank's memory lies, for the host as for the device.
  [[nodiscard]] std::uint64_t* memory() const {
    return static_cast<std::uint64_t*>(memory_.get());
  }

  // -- a life of the rank -----------------------------------------------------

  /// What pins the pool of the next engine; null if it is to stay pageable.
  [[nodiscard]] std::shared_ptr<gpu::pool_registration> make_registrar();

  /// The one engine of this life.
  /// @param keep the host pool
  [[nodiscard]] std::unique_ptr<gpu::copy_engine>
  open(gpu::wake_function wake, std::shared_ptr<void> keep);

  [[nodiscard]] bool is_open() const noexcept {
    return events_ != nullptr;
  }

  /// Enqueues compute behind a fence.
  /// @param fence a `cudaEvent_t`, or zero
  void compute(std::uint64_t fence, const std::function<void()>& first_half,
               const std::function<void()>& second_half);

  /// @pre `is_open()`
  /// @returns what copies may wait for: all compute so far
  [[nodiscard]] std::uint64_t record();

  /// Runs all that is left.
  /// @pre no engine is open
  void finish();

  // -- choices ----------------------------------------------------------------

  /// What the device's streams could do next, one entry for each. For compute
  /// the subject is zero.
  [[nodiscard]] std::vector<choice> moves();

  /// @pre `what` is among the moves
  void run(const choice& what);

  /// Jobs are with the engine.
  [[nodiscard]] bool busy() const noexcept {
    return !jobs_.empty();
  }

  // -- faults -----------------------------------------------------------------

  /// The next job fails from a row on.
  void fail_next(std::uint32_t row) {
    next_fault_ = row;
  }

  /// The next calls that copy this way fail, of whatever device.
  void fail_calls() const;

  /// An error that stays (G7): nothing of this device goes on.
  void lose();

  [[nodiscard]] bool lost() const;

private:
  friend class cuda_life;

  using range = std::pair<const std::byte*, std::uint64_t>;

  struct job_view {
    gpu::copy_job job;
    std::uint64_t bytes = 0;
    /// Of operations that have run.
    std::uint64_t moved = 0;
    bool started = false;
    /// All bytes are where they should be.
    bool whole = false;
    /// Another one has copied the same bytes meanwhile, so that nobody knows
    /// whose operations are whose: what the engine says is believed, and the
    /// bytes are looked at when it says so.
    bool shared = false;
  };

  /// What an operation is for.
  struct purpose {
    std::shared_ptr<stand_in::operation> of;
    choice_kind kind = choice_kind::device_work;
    /// None: it moves no bytes of a job.
    std::optional<job_id> job;
    std::uint64_t bytes = 0;
    /// It takes bytes from a pinned buffer, or to it.
    bool moves_buffer = false;
  };

  /// The bytes of the rank's memory that an operation copies.
  struct kv_copy {
    job_kind kind = job_kind::store;
    std::vector<range> device;
    std::vector<range> host;
    std::uint64_t bytes = 0;
  };

  [[nodiscard]] kv_copy look_at(const stand_in::operation& what) const;

  /// Takes what lies in a pinned buffer for the place in the pool that it comes
  /// from or goes to.
  /// @param moves what a host function moves between the two
  static void see_through(kv_copy& what,
                          const std::vector<gpu::fragment>& moves);

  [[nodiscard]] std::optional<job_id> owner(const kv_copy& what);

  /// Null if it is with the engine no longer.
  [[nodiscard]] job_view* find(job_id id);

  const purpose& purpose_of(const stand_in::stream& where);

  [[nodiscard]] purpose find_purpose(const stand_in::stream& where);

  /// One entry for each stream of the device that could go on.
  [[nodiscard]] std::vector<std::pair<stand_in::stream_ptr, choice>>
  open_moves();

  void run_in(const stand_in::stream_ptr& where);

  /// Tells the watcher what the next piece of a stream begins or completes.
  void notice(const stand_in::stream& where);

  gpu::copy_fault take_fault();

  /// Runs all that the engine has enqueued, and as much compute as that needs.
  void drain();

  /// The engine has said how a job ended.
  void concluded(const gpu::completion& how);

  /// The engine is gone.
  void close();

  rank_id rank_;
  int device_;
  const copy_way& way_;
  copy_watcher& watcher_;
  findings& found_;

  std::uint64_t kv_bytes_;
  gpu::device_buffer memory_;
  gpu::cuda_stream compute_;

  std::shared_ptr<gpu::compute_events> events_;
  std::shared_ptr<gpu::pool_registration> pool_;
  std::optional<std::uint32_t> next_fault_;

  /// With the engine, in the order in which it was given them.
  std::vector<job_view> jobs_;
  /// Of the first operation of a stream.
  std::map<stand_in::object_id, purpose> purposes_;
  /// What a stream has moved into its pinned buffer last.
  std::map<stand_in::object_id, std::vector<gpu::fragment>> buffers_;
  /// The job that a stream has copied last.
  std::map<stand_in::object_id, job_id> last_jobs_;
};

} // namespace kvtide::explore
