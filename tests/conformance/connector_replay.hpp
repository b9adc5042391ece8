// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "messages/cache_manager.hpp"
#include "messages/device.hpp"
#include "messages/engine.hpp"
#include "messages/gpu_worker.hpp"
#include "messages/rank_side.hpp"
#include "messages/scheduler.hpp"
#include "tests/conformance/driver_engine.hpp"
#include "tests/conformance/driver_rank.hpp"
#include "tests/conformance/rank_ledger.hpp"
#include "tests/conformance/recorder.hpp"
#include "tests/conformance/scenario.hpp"
#include "tests/conformance/stage.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace kvtide::conformance {

/// Replays a file of level "connector" through scheduler, requests, cache
/// manager and workers. Plays the engine, and for each rank the device and the
/// process that owns the GPU.
class connector_replay {
public:
  /// All arguments outlive this.
  connector_replay(const connector_scenario& content, plan_delivery delivery,
                   stage& actors, recorder& out);

  void run();

private:
  /// One rank, as the driver sees it.
  struct seat {
    std::shared_ptr<rank_log> log;
    device_actor device;
    rank_side_actor side;
    gpu_worker_actor worker;
    rank_ledger ledger;
  };

  /// A job in flight.
  struct open_job {
    job_kind kind = job_kind::store;
    request_id request = 0;
  };

  void open(plan_delivery delivery);
  void add_rank(rank_id rank);

  // -- lines ------------------------------------------------------------------

  void play(const connector_line& line);

  // Each says one call and returns the answer in the form of `expect`; null if
  // there is none to compare.
  json ask(const add_request& call);
  json ask(const lookup_row& call);
  json ask(const allocated& call);
  json ask(const step_call& call);
  json ask(const finish_call& call);
  json ask(const reports& call);
  json ask(const reset_cache& call);
  json ask(const take_events& call);
  json ask(const probe& call);

  void extend(const std::vector<extend_keys>& calls);
  void report(job_id id, std::uint32_t count);
  void report_on(seat& rank, job_id id);
  void expect_notice(job_id id);

  // -- steps ------------------------------------------------------------------

  void run_ranks(const step_plan& plan);
  json jobs_text(const std::vector<job>& jobs) const;

  // -- helpers ----------------------------------------------------------------

  /// Says one call of the engine and lets all actors come to rest.
  template <class T>
  ticket_id say(T call);

  /// The answer to a call; complains if there is none.
  template <class T>
  std::optional<T> answer(ticket_id ticket);

  void settle();
  void complain_of_rest();
  void check_actors(std::size_t tracked);
  [[nodiscard]] const std::string& name_of(request_id id) const;

  const connector_scenario& content_;
  stage& stage_;
  recorder& out_;
  std::shared_ptr<engine_log> heard_;
  engine_actor engine_;
  scheduler_actor scheduler_;
  std::vector<seat> ranks_;
  /// Actors that are there without any request.
  std::size_t other_actors_ = 0;
  bool by_engine_ = false;
  ticket_id last_ticket_ = 0;
  step_id last_step_ = 0;
  std::map<job_id, open_job> jobs_;
  /// Requests whose end the engine has said.
  std::set<request_id> finished_;
};

} // namespace kvtide::conformance
