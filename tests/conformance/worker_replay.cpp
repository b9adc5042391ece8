// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/worker_replay.hpp"

#include "actors/gpu_worker.hpp"
#include "core/rules.hpp"
#include "tests/conformance/spans.hpp"
#include "tests/conformance/want.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <utility>

namespace kvtide::conformance {

namespace {

struct driver_scheduler_state {
  static inline const char* name = "driver-scheduler";
};

scheduler_worker_port::behavior_type driver_scheduler(
  scheduler_worker_port::stateful_pointer<driver_scheduler_state>,
  std::shared_ptr<worker_replay::scheduler_log> log) {
  return {
    [log](const msg::worker_ready&) { log->ready = true; },
    [log](const msg::worker_left&) { log->ready = false; },
    [log](const msg::transfers_done& x) {
      log->reports.insert(log->reports.end(), x.reports.begin(),
                          x.reports.end());
    },
    [](const msg::ticked&) {},
    [](const msg::steps_taken&) {},
    [](const msg::chunks_kept&) {},
  };
}

job make_job(job_id id, job_kind kind) {
  return {id, kind, 0, std::vector<job_row>{{chunk_key{}, 0, 0, {1}}}};
}

bool contains(const std::vector<job_id>& ids, job_id id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

} // namespace

worker_replay::worker_replay(const worker_scenario& content, stage& actors,
                             recorder& out)
  : content_(content), stage_(actors), out_(out),
    heard_(std::make_shared<scheduler_log>()),
    log_(std::make_shared<rank_log>()) {
  log_->slots = 1;
  scheduler_ = stage_.spawn(driver_scheduler, heard_);
  device_ = stage_.spawn(driver_device, log_);
  side_ = stage_.spawn(driver_rank_side, log_);
  auto cfg = gpu_worker_config{};
  cfg.rule = &core::reference_rules;
  cfg.job_deadline = job_deadline;
  cfg.idle_delay = idle_delay;
  worker_
    = stage_.spawn(gpu_worker, std::move(cfg), device_, scheduler_, side_);
  auto memory = kv_memory{};
  // A rank that is no writer's turn never writes.
  memory.writers = content_.store_writer ? 1 : 2;
  memory.writer = content_.store_writer ? 0 : 2;
  stage_.send(side_, worker_, msg::register_kv{std::move(memory)});
  settle();
  if (!log_->registered || !heard_->ready)
    out_.give_up("got no answer, want kv_registered and worker_ready");
}

void worker_replay::run() {
  for (const auto& line : content_.lines) {
    if (out_.enough())
      return;
    out_.enter(line.number, "worker_step");
    const auto got = play(line.call);
    if (!line.want.is_null())
      out_.compare(line.want, got);
    for (const auto& text : std::exchange(log_->problems, {}))
      out_.complain(text);
  }
}

json worker_replay::play(const worker_step& step) {
  auto begin = msg::begin_step{++last_step_, {}, {}, step.flush};
  for (const auto& load : step.loads) {
    load_names_[load.job] = load.request;
    begin.loads.push_back(make_job(load.job, job_kind::load));
  }
  // A flushed store of the same step comes with the plan, in the flush's order.
  for (const auto id : step.flush)
    if (contains(step.stores, id))
      begin.flushed_stores.push_back(make_job(id, job_kind::store));
  auto later = msg::stores{last_step_, {}};
  for (const auto id : step.stores)
    if (!contains(step.flush, id))
      later.jobs.push_back(make_job(id, job_kind::store));
  deferred_.insert(deferred_.end(), step.stores.begin(), step.stores.end());
  auto result = json::object();
  auto received = json::array();
  // 1 and 2: before the forward pass, and the loads.
  stage_.send(scheduler_, worker_, std::move(begin));
  settle();
  check_ready(last_step_);
  const auto orders = std::exchange(log_->orders, {});
  result["before_forward"] = stores_and_waits(orders);
  result["start_transfers"] = loads(orders);
  // 3: after it.
  stage_.send(side_, worker_, msg::end_step{last_step_, {last_step_}});
  stage_.send(scheduler_, worker_, std::move(later));
  settle();
  (void)stores_and_waits(std::exchange(log_->orders, {}));
  // 4: what ends in this step.
  for (const auto id : step.done)
    stage_.send(device_, worker_, msg::copies_done{{{id, true, 0, {}}}});
  settle();
  result["report"] = reports(received);
  result["deferred_after"] = deferred_;
  result["finished_receiving"] = sorted(std::move(received));
  return result;
}

json worker_replay::stores_and_waits(
  const std::vector<rank_log::device_order>& orders) {
  auto result = json::array();
  for (const auto& order : orders) {
    if (const auto* fence = std::get_if<msg::make_fence>(&order)) {
      result.push_back(json{"wait", sorted(fence->jobs)});
      continue;
    }
    for (const auto& job : std::get<msg::submit_jobs>(order).jobs) {
      if (job.kind != job_kind::store)
        continue;
      result.push_back(json{"submit_store", job.id});
      deferred_.erase(std::remove(deferred_.begin(), deferred_.end(), job.id),
                      deferred_.end());
    }
  }
  return result;
}

json worker_replay::loads(const std::vector<rank_log::device_order>& orders) {
  auto result = json::array();
  for (const auto& order : orders)
    if (const auto* batch = std::get_if<msg::submit_jobs>(&order))
      for (const auto& job : batch->jobs)
        if (job.kind == job_kind::load)
          result.push_back(json{"submit_load", job.id});
  return result;
}

json worker_replay::reports(json& finished_receiving) {
  auto counts = std::map<job_id, std::size_t>{};
  for (const auto& report : std::exchange(heard_->reports, {})) {
    if (report.status != job_status::done)
      out_.complain("got job " + std::to_string(report.job)
                    + " reported as not done");
    ++counts[report.job];
    deferred_.erase(std::remove(deferred_.begin(), deferred_.end(), report.job),
                    deferred_.end());
    if (const auto load = load_names_.find(report.job);
        load != load_names_.end())
      finished_receiving.push_back(load->second);
  }
  auto result = json::array();
  for (const auto& [id, count] : counts)
    result.push_back(json{id, count});
  return result.empty() ? json{} : result;
}

void worker_replay::check_ready(step_id step) {
  if (std::exchange(log_->ready, {}) != std::vector{step})
    out_.give_up("got no answer, want step_ready of step "
                 + std::to_string(step));
}

void worker_replay::settle() {
  if (!stage_.run())
    out_.give_up("the actors do not come to rest");
}

} // namespace kvtide::conformance
