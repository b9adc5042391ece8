// SPDX-License-Identifier: Apache-2.0

/// @file
/// A copy engine whose copies start and end when somebody says so.

#pragma once

#include "gpu/copy_engine.hpp"
#include "gpu/slot_order.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace kvtide::explore {

/// Told before the copies of a rank do something.
class copy_watcher {
public:
  virtual ~copy_watcher() = default;

  virtual void submitted(rank_id rank, const gpu::copy_job& what) = 0;

  /// Half of the bytes move now.
  virtual void starts(rank_id rank, job_id id) = 0;

  /// The other half moves now, or never if not `ok`.
  virtual void ends(rank_id rank, job_id id, bool ok) = 0;

  /// Something waits for `jobs`.
  virtual void fence_asked(rank_id rank, step_id step,
                           const std::vector<job_id>& jobs)
    = 0;
};

/// The copies of one device. Keeps the order that every engine keeps: `after`,
/// events and slots (S8, by `gpu::slot_order`, as the real ones do).
class copy_desk {
public:
  /// @param event_over whether compute that a job waits for has ended
  /// @param stream_fences answers fences at once with an event, as a GPU does
  copy_desk(rank_id rank, copy_watcher& watcher,
            std::function<bool(std::uint64_t)> event_over, bool stream_fences);

  /// The one engine of this desk; copies that run end with it.
  [[nodiscard]] std::unique_ptr<gpu::copy_engine> open(gpu::wake_function wake);

  /// Copies that may make their first half, ascending.
  [[nodiscard]] std::vector<job_id> startable() const;

  /// Copies that are half made, ascending.
  [[nodiscard]] std::vector<job_id> running() const;

  void start(job_id id);

  void end(job_id id);

  /// Rows of a copy that may be its first bad one: the first, one in the
  /// middle and the last, ascending.
  [[nodiscard]] std::vector<std::uint32_t> rows_to_fail(job_id id) const;

  /// Rows before `row` become whole, the others stay half made.
  void fail(job_id id, std::uint32_t row);

  /// What compute of a step waits for has ended.
  [[nodiscard]] bool fence_over(std::uint64_t handle) const;

  [[nodiscard]] bool in_flight(job_id id) const {
    return jobs_.count(id) > 0;
  }

private:
  friend class desk_engine;

  struct entry {
    /// `after` has those before it on its slots as well.
    gpu::copy_job job;
    bool started = false;
  };

  struct fence_entry {
    step_id step = 0;
    std::vector<job_id> jobs;
  };

  void move_bytes(const gpu::copy_job& job, bool first_half);

  void conclude(job_id id, gpu::completion how);

  [[nodiscard]] bool any_in_flight(const std::vector<job_id>& ids) const;

  void close();

  rank_id rank_;
  copy_watcher& watcher_;
  std::function<bool(std::uint64_t)> event_over_;
  bool stream_fences_;
  gpu::wake_function wake_;
  std::map<job_id, entry> jobs_;
  gpu::slot_order order_;
  std::vector<gpu::completion> ended_;
  std::vector<fence_entry> waiting_;
  /// By handle minus one.
  std::vector<fence_entry> events_;
};

} // namespace kvtide::explore
