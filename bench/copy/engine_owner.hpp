// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "gpu/copy_engine.hpp"
#include "gpu/wake_signal.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace kvtide::bench {

/// Drives an engine as a device actor does: sleeps until it is woken, then
/// polls. From one thread at a time.
class engine_owner {
public:
  using maker = std::function<result<std::unique_ptr<gpu::copy_engine>>(
    gpu::wake_function)>;

  /// @returns what `make` says if it fails
  [[nodiscard]] static result<std::unique_ptr<engine_owner>>
  make(const maker& make);

  /// Gives the jobs ids and submits them.
  [[nodiscard]] error submit(std::vector<gpu::copy_job> jobs);

  /// Polls; sleeps before that unless the engine has called since the last
  /// time, until it does, at most for `time`.
  /// @returns bytes that were reported, or why a job failed
  [[nodiscard]] result<std::uint64_t> wait(std::chrono::nanoseconds time);

  /// Submits jobs and waits until all are reported.
  [[nodiscard]] error copy(std::vector<gpu::copy_job> jobs);

  [[nodiscard]] std::size_t in_flight() const {
    return engine_->in_flight();
  }

private:
  engine_owner() = default;

  // Outlives the engine, whose threads set it.
  gpu::wake_signal woken_;
  std::unique_ptr<gpu::copy_engine> engine_;
  job_id next_ = 1;
  std::vector<gpu::completion> done_;
  std::vector<step_id> fences_;
};

} // namespace kvtide::bench
