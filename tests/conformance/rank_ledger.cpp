// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/rank_ledger.hpp"

#include <algorithm>

namespace kvtide::conformance {

namespace {

bool same(const job_row& x, const job_row& y) {
  return x.key == y.key && x.slot == y.slot && x.chunk == y.chunk
      && x.blocks == y.blocks;
}

bool same(const job& x, const job& y) {
  return x.id == y.id && x.kind == y.kind && x.request == y.request
      && std::equal(x.rows.begin(), x.rows.end(), y.rows.begin(), y.rows.end(),
                    [](const auto& a, const auto& b) { return same(a, b); });
}

bool names(const std::vector<job>& jobs, job_id id) {
  return std::any_of(jobs.begin(), jobs.end(),
                     [id](const job& x) { return x.id == id; });
}

} // namespace

void rank_ledger::take(const std::vector<rank_log::device_order>& orders) {
  for (const auto& order : orders)
    std::visit([this](const auto& x) { note(x); }, order);
}

void rank_ledger::note(const msg::submit_jobs& order) {
  for (const auto& x : order.jobs) {
    if (!jobs_.emplace(x.id, x).second)
      complain(x.id, "was handed over twice (S4)");
    if (order.events != events_)
      complain(x.id, "does not start behind the last compute (S6)");
    if (x.kind == job_kind::load)
      loads_after_[x.id] = order.after;
  }
}

void rank_ledger::note(const msg::make_fence& order) {
  fences_.push_back(order);
  for (const auto id : order.jobs)
    if (!handed_over(id) && !reported(id))
      waited_too_early_.insert(id);
}

void rank_ledger::check_step(const step_plan& plan) {
  const auto flush = std::set<job_id>{plan.flush.begin(), plan.flush.end()};
  check_fence(plan, flush);
  check_jobs(plan, flush);
  fences_.clear();
  waited_too_early_.clear();
  loads_after_.clear();
}

void rank_ledger::check_fence(const step_plan& plan,
                              const std::set<job_id>& flush) {
  auto waited = std::set<job_id>{};
  for (const auto& fence : fences_) {
    if (fence.step != plan.step)
      complaints_.push_back(
        "rank " + std::to_string(rank_) + " makes a fence of step "
        + std::to_string(fence.step) + " in step " + std::to_string(plan.step));
    waited.insert(fence.jobs.begin(), fence.jobs.end());
  }
  for (const auto id : flush)
    if (waited.count(id) == 0 && !reported(id))
      complain(id, "is flushed, but compute does not wait for it (S5)");
  for (const auto id : waited)
    if (flush.count(id) == 0)
      complain(id, "is waited for, but not flushed");
  for (const auto id : waited_too_early_)
    if (!names(plan.loads, id))
      complain(id, "is waited for before it is handed over (S4)");
}

void rank_ledger::check_jobs(const step_plan& plan,
                             const std::set<job_id>& flush) {
  for (const auto& x : deferred_)
    check_same(x);
  deferred_.clear();
  for (const auto& x : plan.stores) {
    if (flush.count(x.id) > 0) {
      check_same(x);
      continue;
    }
    if (handed_over(x.id))
      complain(x.id, "is handed over in the step that plans it (S3)");
    deferred_.push_back(x);
  }
  for (const auto& x : plan.loads) {
    check_same(x);
    const auto& after = loads_after_[x.id];
    for (const auto id : flush)
      if (!reported(id) && !names(plan.loads, id)
          && std::find(after.begin(), after.end(), id) == after.end())
        complain(x.id, "does not wait for the flush of job "
                         + std::to_string(id) + " (S5)");
  }
}

void rank_ledger::check_same(const job& planned) {
  const auto pos = jobs_.find(planned.id);
  if (pos == jobs_.end())
    complain(planned.id, "was planned, but not handed over");
  else if (!same(pos->second, planned))
    complain(planned.id, "is not what was planned (S10)");
}

void rank_ledger::complain(job_id id, const std::string& what) {
  complaints_.push_back("job " + std::to_string(id) + " on rank "
                        + std::to_string(rank_) + ' ' + what);
}

} // namespace kvtide::conformance
