// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include "core/order_log.hpp"
#include "core/transfer_ledger.hpp"

#include <deque>
#include <optional>
#include <vector>

namespace kvtide::core {

/// What the order checker of one rank knows: it is told facts as they happen,
/// changes nothing, and complains to the order log (S3, S5, S6).
class worker_checks {
public:
  /// @param idle_delay see `options::idle_delay`
  worker_checks(order_log& log, nanoseconds_t idle_delay)
    : log_(log), idle_delay_(idle_delay) {
    // nop
  }

  /// Stores arrived that the next step hands over.
  void planned(const std::vector<job>& stores, step_id step, nanoseconds_t now);

  /// The plan of a step is run.
  void begun(step_id step, std::vector<job_id> flush);

  /// Compute of the step that was begun is enqueued.
  void ended(step_id step, nanoseconds_t now);

  /// The memory is about to go: nothing waits for a next step any more.
  void leaving() {
    stores_.clear();
  }

  /// Jobs go to the device.
  /// @param after jobs that they wait for
  /// @param computed the step whose compute events go along
  void submitted(const std::vector<job>& jobs, const std::vector<job_id>& after,
                 std::optional<step_id> computed, nanoseconds_t now);

  /// Compute may go on, and waits for nothing in its stream.
  void ready(const transfer_ledger& in_flight) const;

private:
  /// Planned for this step, so the next one hands it over.
  struct planned_store {
    job_id id = 0;
    step_id step = 0;
  };

  void check_delay(const job& store, nanoseconds_t now) const;
  void check_wait(const job& load, const std::vector<job>& batch,
                  const std::vector<job_id>& after) const;

  order_log& log_;
  nanoseconds_t idle_delay_;
  /// Ids ascend, but for what came twice.
  std::deque<planned_store> stores_;
  std::optional<step_id> begun_;
  /// The last step whose compute is enqueued.
  std::optional<step_id> ended_;
  /// Of the step that was begun last.
  std::vector<job_id> flush_;
  /// The later of the last end of a step and the last arrival of stores.
  nanoseconds_t idle_since_ = 0;
};

} // namespace kvtide::core
