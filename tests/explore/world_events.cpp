// SPDX-License-Identifier: Apache-2.0

/// @file
/// What an event does: messages, time and compute.

#include "tests/explore/squatter.hpp"
#include "tests/explore/world.hpp"
#include "tests/support/message_name.hpp"

#include <caf/send.hpp>

#include <utility>
#include <variant>

namespace kvtide::explore {

namespace {

/// Is it one of the messages of a typed interface?
template <class... Signatures>
bool is_any(const caf::type_erased_tuple& content,
            caf::detail::type_list<Signatures...>) {
  return (
    content
      .match_elements<typename test::detail::message_of<Signatures>::type>()
    || ...);
}

/// An answer to the item in progress is part of that item (S1).
bool is_answer(const caf::type_erased_tuple& content) {
  return is_any(content, scheduler_request_port::signatures{})
      || is_any(content, scheduler_cache_port::signatures{});
}

bool asks_for_slots(caf::scheduled_actor& actor) {
  const auto* next = actor.mailbox().peek();
  return next != nullptr
      && next->content().match_elements<msg::prepare_stores>();
}

} // namespace

// -- messages -----------------------------------------------------------------

void world::step_actor(std::size_t index) {
  auto& actor = actors_.ready_actor(index);
  if (scheduler_ && actor.id() == scheduler_.id())
    record_input(actor);
  if (actor.id() == cache_.id() && asks_for_slots(actor))
    step_cache(index);
  else
    actors_.step(index);
}

void world::step_cache(std::size_t index) {
  auto& pool = test::state_of<cache_manager_state>(cache_).cache->pool();
  auto other = std::optional<squatter>{};
  if (refusal_ && refusal_->number == allocations_.size())
    other.emplace(pool, refusal_->left);
  const auto before = pool.state().writing;
  actors_.step(index);
  allocations_.push_back(pool.state().writing - before);
}

void world::record_input(caf::scheduled_actor& actor) {
  auto* next = actor.mailbox().peek();
  if (ending_ || next == nullptr || is_answer(next->content()))
    return;
  const auto& content = next->content();
  if (content.match_elements<msg::explain>()) {
    explained_.push_back(content.get_as<msg::explain>(0).ticket);
  } else {
    if (content.match_elements<msg::lookup>())
      past_.explained[content.get_as<msg::lookup>(0).ticket] = explained_;
    explained_.clear();
  }
  auto added = scheduler_input{
    actors_.now(), next->copy_content_to_message(), {}, {}, {}, {}};
  if (next->sender)
    if (const auto* part = member(next->sender->id()))
      added.from = part->life;
  if (next->content().match_elements<msg::worker_ready>()) {
    added.joins = added.from;
  } else if (next->content().match_elements<caf::down_msg>()) {
    // The scheduler knows a worker by the link that leads to it.
    const auto* dead
      = member(next->content().get_as<caf::down_msg>(0).source.id());
    if (dead != nullptr && dead->role == rank_role::link_to_worker)
      added.worker_died = dead->life;
    else if (dead != nullptr && dead->role == rank_role::device)
      added.device_died = dead->life;
  }
  past_.inputs.push_back(std::move(added));
}

void world::run_quietly() {
  while (actors_.ready() > 0)
    step_actor(0);
}

// -- time and compute ---------------------------------------------------------

void world::pass_time(std::chrono::nanoseconds span) {
  if (!over_) {
    const auto& now = test::state_of<scheduler_state>(scheduler_);
    past_.busy_in_time |= !std::holds_alternative<std::monostate>(now.phase)
                       || !now.queue.empty();
  }
  memory_->time_passed();
  actors_.pass(span);
}

void world::ready(rank_id r, const step_ready& x) {
  const auto events = x.wait_for.kind == fence::kind_t::event;
  memory_->ready(r, x.step, !events, [this, r, &x](job_id id) {
    return ended_alone(r, x.step, id);
  });
  if (ranks_[r].expected.count(x.step) == 0)
    return findings_.report("S5", "step " + std::to_string(x.step)
                                    + " became ready twice, or unasked, on "
                                      "rank "
                                    + std::to_string(r));
  const auto& cuda = ranks_[r].cuda;
  if (cuda && (cuda->lost() || !cuda->is_open()))
    return; // Nothing can be enqueued any more: its process will end.
  enqueue_compute(r, x.step, events ? x.wait_for.handle : 0);
  caf::anon_send(ranks_[r].worker,
                 msg::end_step{x.step, {cuda ? cuda->record() : x.step + 1}});
}

/// A rank that begins a step before it has the plan fails what that brings.
bool world::ended_alone(rank_id r, step_id step, job_id job) const {
  if (!what_.remote)
    return false;
  const auto& its = test::state_of<gpu_worker_state>(ranks_[r].worker);
  return (its.begun_alone && its.begun == step)
      || its.outcomes.find(job) != nullptr;
}

void world::enqueue_compute(rank_id r, step_id step, std::uint64_t fence) {
  auto& rank = ranks_[r];
  rank.expected.erase(step);
  memory_->enqueued(r, step, engine_->rows(step));
  rank.stream.push_back({step, fence, false});
  if (computes_on_device(r))
    rank.cuda->compute(
      fence, [this, r] { start_compute(r); }, [this, r] { end_compute(r); });
}

/// Otherwise by choices alone.
bool world::computes_on_device(rank_id r) const {
  return ranks_[r].cuda && !ranks_[r].lost();
}

void world::move_device(const choice& what) {
  if (what.kind == choice_kind::compute_end) {
    const auto r = static_cast<rank_id>(what.subject);
    return ranks_[r].cuda->run({what.kind, r, 0, 0});
  }
  auto move = what;
  if (what.kind == choice_kind::compute_start)
    move.subject = 0;
  ranks_[what.rank].cuda->run(move);
}

void world::start_compute(rank_id r) {
  memory_->compute_starts(r);
  ranks_[r].stream.front().running = true;
}

void world::end_compute(rank_id r) {
  auto& rank = ranks_[r];
  const auto step = rank.stream.front().step;
  memory_->compute_ends(r);
  rank.stream.pop_front();
  rank.ended.insert(step + 1);
  if (++computed_[step] == ranks_.size())
    engine_->computed(step);
}

} // namespace kvtide::explore
