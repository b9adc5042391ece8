// SPDX-License-Identifier: Apache-2.0

#include "core/worker_checks.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace kvtide::core {

namespace {

std::string text_of(const std::optional<step_id>& step) {
  return step ? "step " + std::to_string(*step) : "no step";
}

} // namespace

void worker_checks::planned(const std::vector<job>& stores, step_id step,
                            nanoseconds_t now) {
  for (const auto& x : stores)
    stores_.push_back({x.id, step});
  idle_since_ = now;
}

void worker_checks::begun(step_id step, std::vector<job_id> flush) {
  if (begun_ && (ended_ != begun_ || step != *begun_ + 1))
    log_.breach(order_rule::s6,
                "a plan was run before the end of the step "
                "before it",
                "begin_step(" + std::to_string(step) + ") came after "
                  + text_of(begun_) + " began and " + text_of(ended_)
                  + " ended");
  begun_ = step;
  flush_ = std::move(flush);
  // From here on these may be handed over at any time.
  while (!stores_.empty() && stores_.front().step < step)
    stores_.pop_front();
}

void worker_checks::ended(step_id step, nanoseconds_t now) {
  ended_ = step;
  idle_since_ = now;
}

void worker_checks::submitted(const std::vector<job>& jobs,
                              const std::vector<job_id>& after,
                              std::optional<step_id> computed,
                              nanoseconds_t now) {
  if (computed != ended_)
    log_.breach(order_rule::s6, "copies do not wait for the last compute",
                "those of job " + std::to_string(jobs.front().id) + " wait for "
                  + text_of(computed) + ", but " + text_of(ended_)
                  + " was enqueued last");
  for (const auto& x : jobs) {
    if (x.kind == job_kind::store)
      check_delay(x, now);
    else
      check_wait(x, jobs, after);
  }
}

void worker_checks::check_delay(const job& store, nanoseconds_t now) const {
  if (stores_.empty())
    return;
  const auto i = std::lower_bound(
    stores_.begin(), stores_.end(), store.id,
    [](const planned_store& x, job_id id) { return x.id < id; });
  if (i == stores_.end() || i->id != store.id)
    return;
  const auto idle
    = ended_ == i->step && now >= later_by(idle_since_, idle_delay_);
  if (!idle)
    log_.breach(order_rule::s3, "a store was handed over before the next step",
                "job " + std::to_string(store.id) + " of step "
                  + std::to_string(i->step) + " when " + text_of(begun_)
                  + " was begun");
}

void worker_checks::check_wait(const job& load, const std::vector<job>& batch,
                               const std::vector<job_id>& after) const {
  const auto has = [](const auto& list, job_id id, auto id_of) {
    return std::any_of(list.begin(), list.end(),
                       [&](const auto& x) { return id_of(x) == id; });
  };
  for (const auto id : flush_)
    if (!has(after, id, [](job_id x) { return x; })
        && !has(batch, id, [](const job& x) { return x.id; }))
      log_.breach(order_rule::s5, "a load does not wait for the flush",
                  "job " + std::to_string(load.id) + " of " + text_of(begun_)
                    + " for job " + std::to_string(id));
}

void worker_checks::ready(const transfer_ledger& in_flight) const {
  for (const auto id : flush_)
    if (in_flight.contains(id))
      log_.breach(order_rule::s5, "compute goes on before the flush ended",
                  text_of(begun_) + ", job " + std::to_string(id));
}

} // namespace kvtide::core
