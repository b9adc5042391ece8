// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "messages/device.hpp"
#include "messages/gpu_worker.hpp"
#include "messages/rank_side.hpp"
#include "messages/scheduler.hpp"
#include "tests/conformance/driver_rank.hpp"
#include "tests/conformance/recorder.hpp"
#include "tests/conformance/scenario.hpp"
#include "tests/conformance/stage.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kvtide::conformance {

/// Replays a file of level "worker" through one worker alone. Plays the
/// scheduler, the rank's process and its device.
class worker_replay {
public:
  /// What the driver's scheduler has heard.
  struct scheduler_log {
    bool ready = false;
    std::vector<msg::transfer_done> reports;
  };

  /// All arguments outlive this.
  worker_replay(const worker_scenario& content, stage& actors, recorder& out);

  void run();

private:
  /// Says everything of one step and returns what is to be compared.
  json play(const worker_step& step);

  /// Actions of the device since the last call, apart from loads.
  json stores_and_waits(const std::vector<rank_log::device_order>& orders);

  /// Loads in the same.
  json loads(const std::vector<rank_log::device_order>& orders);

  json reports(json& finished_receiving);

  void check_ready(step_id step);
  void settle();

  const worker_scenario& content_;
  stage& stage_;
  recorder& out_;
  std::shared_ptr<scheduler_log> heard_;
  std::shared_ptr<rank_log> log_;
  scheduler_worker_port scheduler_;
  device_actor device_;
  rank_side_actor side_;
  gpu_worker_actor worker_;
  step_id last_step_ = 0;
  /// The request that each load of the file is for.
  std::map<job_id, std::string> load_names_;
  /// Stores that the worker has and that it has neither handed over nor
  /// reported.
  std::vector<job_id> deferred_;
};

} // namespace kvtide::conformance
