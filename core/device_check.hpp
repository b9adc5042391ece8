// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include "core/order_log.hpp"

#include <optional>
#include <vector>

namespace kvtide::core {

/// Checks what a device is asked: it has every job before anybody waits for it
/// (S4), and the compute that copies wait for never goes back (S6).
class device_check {
public:
  explicit device_check(order_log& log) : log_(log) {
    // nop
  }

  /// @param computed the step whose compute events came along
  void submitted(const std::vector<job>& jobs, std::optional<step_id> computed);

  /// @param skipped the worker ended all other jobs up to this one by itself
  void fenced(step_id step, const std::vector<job_id>& jobs,
              std::optional<job_id> skipped);

private:
  order_log& log_;
  std::optional<job_id> highest_;
  /// The newest compute that any copy waited for.
  std::optional<step_id> computed_;
};

} // namespace kvtide::core
