// SPDX-License-Identifier: Apache-2.0

/// @file
/// Reports that go wrong, deaths, and connections that end.

#include "tests/explore/world.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <algorithm>

namespace kvtide::explore {

namespace {

/// Events until all copies must have ended without a scheduler.
constexpr std::size_t most_events_alone = 2'000;

} // namespace

// -- reports ------------------------------------------------------------------

void world::hear_reports(rank_id r, const msg::transfers_done& x) {
  auto passed = msg::transfers_done{};
  for (const auto& report : x.reports)
    hear_report(r, report, passed);
  if (!passed.reports.empty())
    forward_reports(r, std::move(passed));
}

void world::hear_report(rank_id r, const msg::transfer_done& x,
                        msg::transfers_done& passed) {
  if (x.status == job_status::done && x.incarnation == ranks_[r].incarnation)
    memory_->reported(r, x.job);
  if (what_.remote && x.status != job_status::done)
    memory_->gave_up(r, x.job);
  const auto number = reports_++;
  if (!bad_report_ || bad_report_->number != number)
    return passed.reports.push_back(x);
  switch (bad_report_->kind) {
    case report_fault::lost:
      return;
    case report_fault::late:
      late_report_.emplace(r, x);
      return;
    case report_fault::twice:
      passed.reports.insert(passed.reports.end(), 2, x);
  }
}

void world::forward_reports(rank_id r, msg::transfers_done x) {
  caf::send_as(ranks_[r].down, caf::actor_cast<caf::actor>(scheduler_),
               std::move(x));
}

bool world::repeats_a_report() const {
  return bad_report_ && bad_report_->kind == report_fault::twice;
}

/// The order checker of the product names the rule first.
std::function<void(const core::order_breach&)> world::breach_listener() {
  return [this](const core::order_breach& x) {
    if (x.rule == core::order_rule::s9 && repeats_a_report())
      return; // Counted and ignored (R10).
    findings_.report(core::to_string(x.rule), "the order checker: " + x.text);
  };
}

// -- deaths -------------------------------------------------------------------

std::string world::kill_next_actor() {
  if (actors_.ready() == 0)
    return {};
  auto& next = actors_.ready_actor(0);
  const auto* part = member(next.id());
  // The scheduler has a fate of its own, the others play somebody.
  if (next.id() == scheduler_.id() || next.id() == port_.id()
      || (part != nullptr && !part->is_real()))
    return {};
  auto name = std::string{next.name()};
  doomed_.insert(next.id());
  if (part != nullptr)
    doomed_ranks_.insert(part->life.rank);
  actors_.kill_at_once(caf::actor_cast<caf::actor>(&next));
  return name;
}

void world::run_until_scheduler_dies(std::size_t events) {
  while (past_.performed.size() < events && plain_step())
    ;           // nop
  over_ = true; // All may go now.
  actors_.kill_at_once(scheduler_);
  for (auto& rank : ranks_) {
    actors_.kill_at_once(rank.down);
    actors_.kill_at_once(rank.up); // Stands for the scheduler there.
  }
  while (past_.performed.size() < events + most_events_alone && plain_step())
    ; // nop
}

bool world::all_ranks_gone() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [this](const auto& rank) {
    return gone_.count(rank.worker.id()) > 0
        && gone_.count(rank.device.id()) > 0;
  });
}

void world::kill_rank(rank_id r) {
  auto& rank = ranks_[r];
  if (!rank.alive)
    return;
  rank.alive = false; // Its end is no finding.
  actors_.kill_at_once(rank.worker);
  actors_.kill_at_once(rank.device);
  lose_rank(r);
}

void world::notice_deaths() {
  for (rank_id r = 0; r < ranks_.size(); ++r)
    if (ranks_[r].alive && gone_.count(ranks_[r].worker.id()) > 0)
      lose_rank(r);
}

void world::lose_rank(rank_id r) {
  auto& rank = ranks_[r];
  rank.alive = false;
  rank.joined = false;
  engine_->miss(r);
  rank.cut = false;
  // What it said and the scheduler has not heard may still arrive.
  if (!rank.noticed_there)
    actors_.kill_at_once(rank.down);
  // Its steps go on without fences: jobs that these would wait for have failed.
  for (auto step : std::set<step_id>{rank.expected})
    enqueue_compute(r, step, 0);
}

void world::fail_copy(const choice& what) {
  const auto& rank = ranks_[what.rank];
  if (!rank.cuda)
    rank.desk->fail(what.subject, what.row);
  else if (what.row < 2)
    rank.cuda->fail_next(what.row);
  else
    rank.cuda->fail_calls();
}

void world::bring_back(rank_id r) {
  // What the old process had to compute is over when a new one starts.
  while (ranks_[r].lost() && !ranks_[r].stream.empty()) {
    if (!ranks_[r].stream.front().running)
      start_compute(r);
    end_compute(r);
  }
  memory_->starts_again(r);
  ++ranks_[r].incarnation;
  start_rank(r);
}

// -- connections --------------------------------------------------------------

/// Whether anything had been on its way, nobody will know.
void world::cut_link(rank_id r) {
  auto& rank = ranks_[r];
  rank.cut = true;
  rank.joined = false;
  cut_before_.insert(r);
  memory_->cut_off(r);
}

void world::notice_cut(rank_id r, bool at_worker) {
  auto& rank = ranks_[r];
  (at_worker ? rank.noticed_here : rank.noticed_there) = true;
  actors_.kill_at_once(at_worker ? rank.up : rank.down);
}

/// Only the rank has to know that it was away: then it asks again.
void world::join_again(rank_id r) {
  auto& rank = ranks_[r];
  if (rank.noticed_there) {
    ++rank.connection;
    open_down_link(r);
  }
  open_up_link(r);
  rank.cut = rank.noticed_there = rank.noticed_here = false;
  attach(r);
}

} // namespace kvtide::explore
