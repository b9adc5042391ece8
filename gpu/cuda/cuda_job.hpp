// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "gpu/copy_engine.hpp"
#include "gpu/copy_fault.hpp"
#include "gpu/cuda/event.hpp"
#include "gpu/fragments.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::gpu {

class copy_lane;

/// A job that was accepted and has not ended, and how far it is.
struct cuda_job {
  job_id id = 0;
  job_kind kind = job_kind::store;
  std::vector<slot_id> slots;
  std::vector<compute_event> after_events;
  /// Jobs that must end before this one starts; empty once it waits for them in
  /// its stream.
  std::vector<std::shared_ptr<cuda_job>> before;
  fragment_cursor rest;
  copy_fault fault;

  /// The streams that it goes through.
  copy_lane* lane = nullptr;
  /// Its waits are enqueued.
  bool started = false;
  /// A call failed: nothing more of it is enqueued.
  bool stopped = false;
  /// All its copies are enqueued, or as many as there will be.
  bool enqueued = false;
  /// Nothing of it is under way any more.
  bool ended = false;
  std::size_t slices = 0;
  std::size_t slices_under_way = 0;

  /// Behind its waits, for the time that it took. May be null.
  cuda_event start;
  /// Behind its last copy, once all are enqueued; its last slice owns it. Null
  /// if recording it failed: then only the host can tell that the job has
  /// ended.
  cudaEvent_t end = nullptr;

  /// If not empty: why it fails.
  std::string failure;
  std::uint32_t first_failed_row = 0;
  std::uint64_t copied_bytes = 0;

  /// Others can be ordered behind it in a stream.
  [[nodiscard]] bool can_be_followed() const noexcept {
    return enqueued && end != nullptr;
  }

  /// @param row the first that is not complete
  void stop(std::string why, std::uint32_t row) {
    stopped = true;
    failure = std::move(why);
    first_failed_row = row;
  }
};

} // namespace kvtide::gpu
