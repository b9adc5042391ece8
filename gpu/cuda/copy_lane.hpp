// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "gpu/copy_engine.hpp"
#include "gpu/cuda/bounce_buffer.hpp"
#include "gpu/cuda/copy_commands.hpp"
#include "gpu/cuda/cuda_job.hpp"
#include "gpu/cuda/event_cache.hpp"
#include "gpu/cuda/stream.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace kvtide::gpu {

/// A stream that copies, and the stream beside it whose host functions wake the
/// owner: on the first they would hold up the copies behind them (G1), so they
/// go there only where no event says when the copies have ended.
class copy_lane {
public:
  /// Fragments that one slice may have: as many as one batch call takes, as the
  /// bounce buffer has room for, and as fit into a kernel's table with what is
  /// cut of them. More at once would fill the queue of a driver, too.
  static constexpr std::size_t most_fragments = bounce_buffer::most_fragments;

  struct config {
    copy_commands::settings how;
    /// Outlives the lane.
    piece_tables* tables = nullptr;
    event_cache* events = nullptr;
    const pool_registration* pool = nullptr;
    const wake_function* wake = nullptr;
    /// Bytes of the bounce buffer; used if there is no `pool`.
    std::uint64_t bounce_bytes = 0;
    bool urgent = false;
  };

  /// @pre the device is current, here and in all calls
  [[nodiscard]] static result<std::unique_ptr<copy_lane>> make(config how);

  [[nodiscard]] cudaStream_t stream() const noexcept {
    return copies_.get();
  }

  /// Bytes that one slice may have.
  [[nodiscard]] std::uint64_t most_bytes() const noexcept;

  /// Enqueues a slice of a job, possibly an empty one, which ends when all
  /// before it has. Sets the job's end, its number of slices and, if not all of
  /// it is under way, its failure.
  /// @returns bytes that count as under way
  std::uint64_t enqueue(const std::shared_ptr<cuda_job>& job,
                        std::vector<fragment> what);

  struct ended_slice {
    std::shared_ptr<cuda_job> job;
    std::uint64_t bytes = 0;
    /// Complete; null if recording it failed.
    cuda_event end;
  };

  /// @returns the oldest slice if it has ended
  /// @param lost set if the device says that nothing will ever end
  [[nodiscard]] std::optional<ended_slice> take_ended(error& lost);

  /// True if nothing is under way.
  [[nodiscard]] bool empty() const noexcept {
    return under_way_.empty();
  }

  /// True if nothing is under way, and nobody will be woken any more.
  [[nodiscard]] bool idle() const;

  /// True if flushes go this way.
  [[nodiscard]] bool urgent() const noexcept {
    return config_.urgent;
  }

  /// Leaks what belongs to the context (G7).
  void abandon();

  /// Jobs that wait for room, in order.
  std::deque<std::shared_ptr<cuda_job>> queue;

private:
  struct slice {
    std::shared_ptr<cuda_job> job;
    std::uint64_t bytes = 0;
    cuda_event end;
    std::unique_ptr<piece_tables::table> table;
    std::unique_ptr<bounce_move> move;
  };

  copy_lane(config how, cuda_stream copies, cuda_stream wakes,
            bounce_buffer bounce);

  [[nodiscard]] void* device_view(const void* host, std::uint64_t bytes) const;

  /// Enqueues the copies of a slice.
  [[nodiscard]] enqueued_fragments
  start(job_kind kind, std::vector<fragment>& what, slice& out);

  void record_end(slice& what);

  void wake_behind(const slice& what);

  config config_;
  cuda_stream copies_;
  cuda_stream wakes_;
  bounce_buffer bounce_;
  copy_commands commands_;
  std::deque<slice> under_way_;
};

} // namespace kvtide::gpu
