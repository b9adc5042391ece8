// SPDX-License-Identifier: Apache-2.0

/// @file
/// The copy engines of the host devices: plain memory, copies by threads.

#pragma once

#include "kvtide/result.hpp"

#include "gpu/copy_engine.hpp"
#include "gpu/copy_fault.hpp"
#include "gpu/host_event.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace kvtide::gpu {

/// Configures either host engine.
struct host_engine_config {
  /// Required.
  wake_function wake;

  /// Threads per direction, at least 1, each in the role of a stream: its jobs
  /// run one after the other. Jobs are dealt out in turn.
  std::uint32_t streams_per_direction = 1;

  /// Added to each job. Real engine: a job lasts at least this long.
  nanoseconds_t latency = 0;

  /// For each stream. Zero means as fast as the memory is (real engine) or at
  /// once (virtual engine).
  std::uint64_t bytes_per_second = 0;

  /// Events that `copy_job::after_events` may name. Real engine only; without
  /// a table only event zero is known.
  std::shared_ptr<host_event_table> events;

  /// Asked once per job, by `submit`, on the caller's thread. For tests.
  std::function<copy_fault(job_id, job_kind)> fault;
};

/// The real clock. A job runs whole on its stream once its constraints are
/// met; a job that waits keeps those behind it on its stream waiting, as in
/// CUDA. Fences are of kind `none` or `host`. A job that names an unknown event
/// fails without a copy.
/// @returns `ec::invalid_options` if the configuration is incomplete, or
///          `ec::out_of_memory` if the system refuses a thread.
[[nodiscard]] result<std::unique_ptr<copy_engine>>
make_host_copy_engine(host_engine_config config);

/// The virtual clock. A job starts at the latest of: the moment of `submit`,
/// the end of the job before it on its stream, the ends of the jobs it is
/// ordered behind, its compute events. It is due at start + latency + bytes /
/// bandwidth (rounded up). All of that is known at `submit`, so fences are of
/// kind `none` or `event`.
///
/// Each job is copied in two halves: the first half of its bytes at its start
/// (at `submit`, if that is its start), the rest when time reaches its due
/// moment. What a missing wait lets somebody write or read in between
/// therefore shows as wrong bytes. The threads copy one half at a time, in the
/// order of simulated time, so that even wrong bytes are the same in each run.
///
/// What is due in one `advance` is announced in the order (due, job id).
///
/// The model writes the results of a compute that ends at E after all events
/// before E were advanced (`advance(E - 1)`) and before `advance(E)`.
/// @returns as `make_host_copy_engine`.
[[nodiscard]] result<std::unique_ptr<copy_engine>>
make_virtual_copy_engine(host_engine_config config);

} // namespace kvtide::gpu
