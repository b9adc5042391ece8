// SPDX-License-Identifier: Apache-2.0

/// @file
/// What may happen next, and its choice.

#include "tests/explore/describe.hpp"
#include "tests/explore/world.hpp"
#include "tests/support/mix.hpp"

#include <algorithm>

namespace kvtide::explore {

namespace {

/// A run that goes on longer than this goes on for ever.
constexpr std::size_t most_events = 50'000;

/// Idle delays that may pass in one run, unless nothing else can happen.
constexpr std::uint32_t some_idle_times = 6;

/// Idle delays until everything must have come to rest.
constexpr std::uint32_t most_idle_times = 60;

} // namespace

void world::run(const interference& before) {
  while (!found()) {
    if (before)
      before(*this, past_.performed.size());
    notice_deaths();
    const auto open = open_choices();
    if (open.empty())
      break;
    const auto index = choose(open);
    perform(open[index], index);
    if (past_.performed.size() > most_events)
      findings_.report("life", "the run does not come to rest");
  }
  if (!found() && !engine_->over())
    findings_.report("life", "nothing can happen any more, but requests are "
                             "still alive");
  if (!found())
    check_rest();
  if (way_.cuda && !found())
    check_machine();
}

// -- what is open -------------------------------------------------------------

/// In the order of `choice_kind`, as the first is the plain one.
world::choices world::open_choices() const {
  auto out = choices{};
  add_messages(out);
  if (way_.cuda)
    add_moves(out);
  else
    add_copies(out);
  add_compute(out);
  add_engine_and_time(out);
  if (!ending_ && !over_)
    add_trouble(out);
  return out;
}

void world::add_messages(choices& out) const {
  for (std::size_t i = 0; i < actors_.ready(); ++i) {
    const auto id = actors_.ready_actor(i).id();
    // Workers and devices touch their own rank only: what they send to others
    // goes through their links.
    const auto* part = member(id);
    const auto alone
      = part != nullptr
     && (part->is_real() || part->role == rank_role::link_to_worker);
    out.push_back({choice_kind::actor, alone ? part->life.rank : center, id});
  }
}

void world::add_copies(choices& out) const {
  for (rank_id r = 0; r < ranks_.size(); ++r)
    for (auto id : ranks_[r].desk->running())
      out.push_back({choice_kind::copy_end, r, id});
  for (rank_id r = 0; r < ranks_.size(); ++r)
    for (auto id : ranks_[r].desk->startable())
      out.push_back({choice_kind::copy_start, r, id});
}

/// What the streams of all devices could do, compute included, in the order of
/// their kinds.
void world::add_moves(choices& out) const {
  auto open = choices{};
  for (rank_id r = 0; r < ranks_.size(); ++r) {
    const auto& rank = ranks_[r];
    if (!rank.cuda)
      continue;
    for (auto x : rank.cuda->moves()) {
      if (x.kind == choice_kind::compute_start)
        x.subject = rank.stream.front().step;
      if (x.kind == choice_kind::compute_end)
        x = {x.kind, center, r, 0}; // As below.
      open.push_back(x);
    }
  }
  for (auto kind : {choice_kind::device_work, choice_kind::copy_end,
                    choice_kind::copy_start, choice_kind::compute_end,
                    choice_kind::compute_start})
    for (const auto& x : open)
      if (x.kind == kind)
        out.push_back(x);
}

/// Of ranks whose compute is not in a stream of a device.
void world::add_compute(choices& out) const {
  // Two ranks that end the same step are seen by the engine: it is at the
  // center.
  for (rank_id r = 0; r < ranks_.size(); ++r)
    if (const auto& stream = ranks_[r].stream;
        !computes_on_device(r) && !stream.empty() && stream.front().running)
      out.push_back({choice_kind::compute_end, center, r});
  for (rank_id r = 0; r < ranks_.size(); ++r)
    if (const auto& stream = ranks_[r].stream;
        !computes_on_device(r) && !stream.empty() && !stream.front().running
        && (way_.cuda || ranks_[r].desk->fence_over(stream.front().fence)))
      out.push_back({choice_kind::compute_start, r, stream.front().step});
}

void world::add_engine_and_time(choices& out) const {
  if (engine_->can_take_outputs())
    out.push_back({choice_kind::outputs, center, 0});
  if (engine_->can_turn(false))
    out.push_back({choice_kind::turn, center, 0});
  if (out.empty() && late_report_)
    out.push_back({choice_kind::late_report, center, 0});
  if (actors_.timers_pending()
      && (out.empty() ? idle_times_ < most_idle_times
                      : idle_times_ < some_idle_times && !ending_))
    out.push_back({choice_kind::idle_time, center, 0});
  if (out.empty() && engine_->can_turn(true))
    out.push_back({choice_kind::turn, center, 0});
}

void world::add_trouble(choices& out) const {
  const auto copying = std::any_of(out.begin(), out.end(), [](const choice& x) {
    return x.kind == choice_kind::copy_end || x.kind == choice_kind::copy_start
        || x.kind == choice_kind::device_work;
  });
  if (actors_.timers_pending() && copying && deadlines_ < what_.deadlines)
    out.push_back({choice_kind::deadline, center, 0});
  if (failures_ < what_.copy_failures && way_.cuda)
    for (rank_id r = 0; r < ranks_.size(); ++r)
      // From its first or second row on, or as soon as a call fails.
      for (std::uint32_t how = 0; how < 3 && ranks_[r].cuda->busy(); ++how)
        out.push_back({choice_kind::copy_failure, r, 0, how});
  if (failures_ < what_.copy_failures && !way_.cuda)
    for (rank_id r = 0; r < ranks_.size(); ++r)
      for (auto id : ranks_[r].desk->running())
        for (auto row : ranks_[r].desk->rows_to_fail(id))
          out.push_back({choice_kind::copy_failure, r, id, row});
  if (deaths_ < what_.rank_deaths && !engine_->over())
    for (rank_id r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].joined) {
        out.push_back({choice_kind::rank_death, center, r});
        if (way_.cuda && !ranks_[r].lost())
          out.push_back({choice_kind::rank_death, center, r, 1});
      }
  // Its process sees that its compute fails, sooner or later.
  for (rank_id r = 0; r < ranks_.size(); ++r)
    if (ranks_[r].alive && ranks_[r].lost()
        && std::none_of(out.begin(), out.end(), [r](const choice& x) {
             return x.kind == choice_kind::rank_death && x.subject == r;
           }))
      out.push_back({choice_kind::rank_death, center, r});
  for (rank_id r = 0; r < ranks_.size(); ++r)
    if (!ranks_[r].alive && gone_.count(ranks_[r].device.id()) > 0)
      out.push_back({choice_kind::rank_return, center, r});
  add_cuts(out);
}

void world::add_cuts(choices& out) const {
  for (rank_id r = 0; r < ranks_.size(); ++r) {
    const auto& rank = ranks_[r];
    if (!rank.alive)
      continue;
    if (!rank.cut && rank.joined && cuts_ < what_.cuts && !engine_->over())
      out.push_back({choice_kind::link_cut, center, r});
    if (rank.cut && !rank.noticed_here)
      out.push_back({choice_kind::link_noticed, center, r, 1});
    if (rank.cut && !rank.noticed_there)
      out.push_back({choice_kind::link_noticed, center, r, 0});
    if (rank.cut && rank.noticed_here)
      out.push_back({choice_kind::link_return, center, r});
  }
}

// -- what is done -------------------------------------------------------------

std::size_t world::choose(const choices& open) {
  if (ending_ || open.size() == 1)
    return 0;
  const auto index = next_->pick(open);
  past_.picks.push_back(static_cast<std::uint32_t>(index));
  past_.decided_at.push_back(past_.performed.size());
  return index;
}

void world::perform(const choice& what, std::size_t index) {
  past_.performed.push_back(what);
  for (auto x :
       {static_cast<std::uint64_t>(what.kind), std::uint64_t{what.rank},
        what.subject, std::uint64_t{what.row}})
    past_.fingerprint = test::mix(past_.fingerprint, x);
  if (traced_)
    past_.trace.push_back(text_of(what, index));
  switch (what.kind) {
    case choice_kind::actor:
      return step_actor(index);
    case choice_kind::device_work:
      return move_device(what);
    case choice_kind::copy_end:
      return way_.cuda ? move_device(what)
                       : ranks_[what.rank].desk->end(what.subject);
    case choice_kind::copy_start:
      return way_.cuda ? move_device(what)
                       : ranks_[what.rank].desk->start(what.subject);
    case choice_kind::copy_failure:
      ++failures_;
      return fail_copy(what);
    case choice_kind::compute_start:
      return computes_on_device(what.rank) ? move_device(what)
                                           : start_compute(what.rank);
    case choice_kind::compute_end:
      return computes_on_device(static_cast<rank_id>(what.subject))
             ? move_device(what)
             : end_compute(static_cast<rank_id>(what.subject));
    case choice_kind::outputs:
      return engine_->take_outputs();
    case choice_kind::turn:
      return engine_->turn();
    case choice_kind::late_report:
      forward_reports(late_report_->first, {{late_report_->second}});
      late_report_.reset();
      return;
    case choice_kind::idle_time:
      ++idle_times_;
      return pass_time(what_.opts.idle_delay);
    case choice_kind::deadline:
      ++deadlines_;
      return pass_time(what_.opts.job_deadline);
    case choice_kind::rank_death:
      if (what.row == 1) {
        ++deaths_;
        return ranks_[what.subject].cuda->lose();
      }
      deaths_ += !ranks_[what.subject].lost(); // Else it was counted.
      return kill_rank(static_cast<rank_id>(what.subject));
    case choice_kind::rank_return:
      return bring_back(static_cast<rank_id>(what.subject));
    case choice_kind::link_cut:
      ++cuts_;
      return cut_link(static_cast<rank_id>(what.subject));
    case choice_kind::link_noticed:
      return notice_cut(static_cast<rank_id>(what.subject), what.row == 1);
    case choice_kind::link_return:
      return join_again(static_cast<rank_id>(what.subject));
    case choice_kind::whim:
      return;
  }
}

/// The plain course takes the first of what is open.
/// @returns false if nothing is
bool world::plain_step() {
  notice_deaths();
  const auto open = open_choices();
  if (open.empty())
    return false;
  perform(open.front(), 0);
  return true;
}

// -- names --------------------------------------------------------------------

std::string world::text_of(const choice& what, std::size_t index) const {
  const auto rank = "rank " + std::to_string(what.rank) + ": ";
  const auto id = std::to_string(what.subject);
  switch (what.kind) {
    case choice_kind::actor: {
      auto& actor = actors_.ready_actor(index);
      const auto* next = actor.mailbox().peek();
      const auto who = name_of(actor.id(), actor.name()) + " <- ";
      if (next == nullptr)
        return who + "its start";
      if (next->content().match_elements<caf::down_msg>())
        return who + "the death of "
             + name_of(next->content().get_as<caf::down_msg>(0).source.id(),
                       "a request or the cache manager");
      return who + describe(*next, texts_);
    }
    case choice_kind::copy_end:
      return rank + "copy of job " + id + " ends";
    case choice_kind::copy_start:
      return rank + "copy of job " + id + " starts";
    case choice_kind::copy_failure:
      if (way_.cuda && what.row == 2)
        return "the next calls that copy fail";
      return rank
           + (way_.cuda ? std::string{"the next copy"} : "copy of job " + id)
           + " fails from row " + std::to_string(what.row) + " on";
    case choice_kind::device_work:
      return rank + "stream " + id + " goes on";
    case choice_kind::compute_start:
      return rank + "compute of step " + id + " starts";
    case choice_kind::compute_end:
      return "rank " + id + ": compute of step "
           + std::to_string(ranks_[what.subject].stream.front().step) + " ends";
    case choice_kind::outputs:
      return "engine takes results";
    case choice_kind::turn:
      return "engine goes on";
    case choice_kind::late_report:
      return "a report arrives that was held back";
    case choice_kind::idle_time:
      return "the idle delay passes";
    case choice_kind::deadline:
      return "the job deadline passes";
    case choice_kind::rank_death:
      return "rank " + id
           + (what.row == 1 ? " loses its CUDA context" : " dies");
    case choice_kind::rank_return:
      return "rank " + id + " comes back";
    case choice_kind::link_cut:
      return "the connection to rank " + id + " is cut";
    case choice_kind::link_noticed:
      return (what.row == 1 ? "rank " + id : "the scheduler")
           + " notices that the connection to rank " + id + " is cut";
    case choice_kind::link_return:
      return "rank " + id + " joins again";
    case choice_kind::whim:
      break;
  }
  return "whim " + id;
}

std::string world::name_of(caf::actor_id id, const char* otherwise) const {
  const auto* part = member(id);
  if (part == nullptr)
    return otherwise;
  constexpr const char* names[]
    = {"worker", "device", "rank side", "link to worker", "link from worker"};
  return names[static_cast<std::size_t>(part->role)]
       + (" " + std::to_string(part->life.rank));
}

const rank_member* world::member(caf::actor_id id) const {
  const auto found = members_.find(id);
  return found != members_.end() ? &found->second : nullptr;
}

} // namespace kvtide::explore
