// SPDX-License-Identifier: Apache-2.0

#include "tests/support/played_rank.hpp"

#include "messages/plan_bytes.hpp"
#include "messages/step_bytes.hpp"
#include "tests/support/listen.hpp"
#include "tests/support/plan_text.hpp"

#include <caf/actor_cast.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace kvtide::test {

namespace {

bool share_a_slot(const job& x, const job& y) {
  return std::any_of(x.rows.begin(), x.rows.end(), [&](const job_row& a) {
    return std::any_of(y.rows.begin(), y.rows.end(),
                       [&](const job_row& b) { return a.slot == b.slot; });
  });
}

/// As it arrives in another process.
template <class Message>
Message carried(const Message& x, bool far) {
  if (!far)
    return x;
  auto out = Message{};
  if (!from_bytes(to_bytes(x), out))
    ADD_FAILURE() << "a message does not come back from its bytes";
  return out;
}

/// Of the one scheduler that there is.
constexpr std::uint64_t epoch = 1;

} // namespace

played_rank::played_rank(surroundings& around, gpu_worker_config config)
  : around_(around), config_(std::move(config)) {
  // nop
}

void played_rank::start(std::uint64_t slots) {
  auto& world = around_.world;
  slots_ = slots;
  tap_ = world.spawn(play_tap, this);
  device_ = world.spawn(play_device, this);
  const auto side = world.spawn(play_rank_side, this);
  worker_ = world.spawn(gpu_worker, config_, device_,
                        config_.remote ? scheduler_worker_port{}
                                       : scheduler_worker_port{tap_},
                        side);
  if (config_.remote)
    world.send(worker_,
               msg::attach{config_.incarnation, epoch,
                           caf::actor_cast<caf::strong_actor_ptr>(tap_)});
  auto memory = kv_memory{};
  memory.rank = config_.rank;
  world.send(worker_, msg::register_kv{memory});
  world.run();
}

void played_rank::restart(std::uint64_t slots) {
  ++config_.incarnation;
  copies_.clear();
  start(slots);
}

void played_rank::unregister() {
  around_.world.send(worker_, msg::unregister_kv{});
  around_.world.run();
}

void played_rank::register_again() {
  auto memory = kv_memory{};
  memory.rank = config_.rank;
  around_.world.send(worker_, msg::register_kv{memory});
  around_.world.run();
}

void played_rank::let_go() {
  tap_ = nullptr;
  worker_ = nullptr;
  device_ = nullptr;
  orphan_ = nullptr;
}

// -- neighbours of the worker -------------------------------------------------

tap_actor::behavior_type
played_rank::play_tap(tap_actor::stateful_pointer<part_state> self,
                      played_rank* rank) {
  return {
    [=](const msg::begin_step& x) {
      rank->plans_.push_back(encode_plan(x, {x.step, {}}));
      self->send(rank->worker_, carried(x, rank->config_.remote));
      if (rank->config_.remote)
        self->send(rank->worker_, msg::await_step{x.step, {}});
    },
    [=](const msg::stores& x) {
      rank->plans_.push_back(encode_plan({x.step, {}, {}, {}}, x));
      if (!std::exchange(rank->loses_stores_, false))
        self->send(rank->worker_, carried(x, rank->config_.remote));
    },
    [=](const msg::seat& x) { self->send(rank->worker_, x); },
    [=](const msg::tick& x) { self->send(rank->worker_, x); },
    [=](const msg::report_again& x) { self->send(rank->worker_, x); },
    [=](const msg::pause& x) { self->send(rank->worker_, x); },
    [=](const msg::worker_ready& x) { self->send(rank->around_.scheduler, x); },
    [=](const msg::worker_left& x) { self->send(rank->around_.scheduler, x); },
    [=](const msg::transfers_done& x) {
      auto kept = msg::transfers_done{};
      for (const auto& report : x.reports) {
        if (report.status == job_status::late)
          rank->late_.insert(report.job);
        if (rank->lost_reports_.erase({report.job, report.status}) == 0)
          kept.reports.push_back(report);
      }
      if (!kept.reports.empty())
        self->send(rank->around_.scheduler, std::move(kept));
    },
    [=](const msg::ticked& x) { self->send(rank->around_.scheduler, x); },
    [=](const msg::steps_taken& x) { self->send(rank->around_.scheduler, x); },
    [=](const msg::chunks_kept& x) { self->send(rank->around_.scheduler, x); },
  };
}

rank_side_actor::behavior_type
played_rank::play_rank_side(rank_side_actor::stateful_pointer<part_state>,
                            played_rank* rank) {
  return listen<rank_side_actor>(
    [=](const step_ready& x) {
      rank->ready_.push_back(x.step);
      rank->last_ready_ = x.step;
      if (!rank->around_.compute_held)
        rank->end_compute();
    },
    [=](const rank_failed& x) {
      rank->around_.notice("rank_failed " + std::to_string(x.rank) + " "
                           + to_string(x.reason.code));
    });
}

device_actor::behavior_type
played_rank::play_device(device_actor::stateful_pointer<part_state> self,
                         played_rank* rank) {
  return listen<device_actor>(
    [=](const msg::register_memory&) {
      self->send(rank->worker_,
                 msg::memory_registered{rank->slots_, 1, {}, {}});
    },
    [=](const msg::unregister_memory&) {
      self->send(rank->worker_, msg::memory_unregistered{});
    },
    [=](const msg::submit_jobs& x) { rank->submit(x); },
    [=](const msg::make_fence& x) {
      rank->device_log_.push_back("fence " + joined(x.jobs, " "));
      rank->fences_.push_back(x);
      rank->answer_fences();
    },
    [=](const msg::device_tick&) {
      self->send(rank->worker_, msg::device_ticked{never});
    });
}

// -- compute and copies -------------------------------------------------------

void played_rank::submit(const msg::submit_jobs& x) {
  auto ids = std::vector<job_id>{};
  for (const auto& work : x.jobs) {
    ids.push_back(work.id);
    before_[work.id] = {x.after.begin(), x.after.end()};
    for (const auto& [id, other] : copies_)
      if (share_a_slot(work, other))
        before_[work.id].insert(id); // S8
    if (!copies_.emplace(work.id, work).second)
      ADD_FAILURE() << "job " << work.id << " came twice";
  }
  auto line = "submit " + joined(ids, " ");
  if (!x.after.empty())
    line += " after " + joined(x.after, " ");
  device_log_.push_back(std::move(line));
}

void played_rank::answer_fences() {
  while (!fences_.empty()) {
    const auto& first = fences_.front();
    if (std::any_of(first.jobs.begin(), first.jobs.end(),
                    [&](job_id id) { return copies_.count(id) > 0; }))
      return;
    around_.world.send(worker_, msg::fence_made{first.step, {}});
    fences_.pop_front();
  }
}

void played_rank::end_compute() {
  if (ready_.empty())
    return;
  const auto step = ready_.front();
  ready_.pop_front();
  around_.book.compute(step, memory_);
  around_.world.send(worker_, msg::end_step{step, {}});
}

bool played_rank::end_copy(job_id id, const ending& how) {
  const auto found = copies_.find(id);
  if (found == copies_.end())
    return false;
  const auto work = std::move(found->second);
  copies_.erase(found);
  if (!how.fail)
    for (auto row : around_.book.copy(work, memory_))
      if (late_.count(id) == 0)
        around_.wrong_bytes.push_back(
          name_of(work.kind, id) + " "
          + around_.book.text().chunk(work, work.rows[row]));
  around_.world.send(worker_,
                     msg::copies_done{{{id, !how.fail, how.first_failed_row,
                                        how.fail ? "as the test wants" : ""}}});
  answer_fences();
  around_.world.run();
  return true;
}

std::vector<job_id> played_rank::copies() const {
  auto out = std::vector<job_id>{};
  for (const auto& [id, work] : copies_) {
    const auto& before = before_.at(id);
    if (std::none_of(before.begin(), before.end(),
                     [&](job_id other) { return copies_.count(other) > 0; }))
      out.push_back(id);
  }
  return out;
}

// -- faults -------------------------------------------------------------------

void played_rank::kill() {
  around_.world.kill(worker_);
  around_.world.kill(device_);
  around_.world.kill(tap_);
  copies_.clear();
  fences_.clear();
  ready_.clear();
}

void played_rank::kill_worker() {
  orphan_ = device_;
  around_.world.kill(worker_);
  around_.world.kill(tap_);
  fences_.clear();
  ready_.clear();
}

void played_rank::kill_orphan() {
  around_.world.kill(orphan_);
}

void played_rank::lose_report(job_id job, job_status status) {
  lost_reports_.emplace(job, status);
}

void played_rank::lose_stores() {
  loses_stores_ = true;
}

} // namespace kvtide::test
