// SPDX-License-Identifier: Apache-2.0

/// @file
/// Calls that wait for their answers, for tools, tests and engines with a
/// thread to spare. A serving loop polls instead.

#pragma once

#include "kvtide/runtime.hpp"
#include "kvtide/waiting.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kvtide {

/// Makes calls of a runtime and waits for their answers. Calls that have none,
/// such as `runtime::add`, are made on the runtime itself; that one had no
/// effect shows as `call_failed` in `poll`. Everything else that arrives
/// meanwhile is set aside and comes from `poll`, in the order in which the
/// runtime said it: notices, answers to other calls, and an answer that came
/// after its wait had ended.
///
/// While one of these exists, its `poll` and `wait` take the place of the
/// runtime's: `runtime::event_fd` knows nothing of what was set aside, so call
/// `poll` behind every wait, before sleeping on the descriptor.
///
/// Errors: what `call_failed` says; `ec::timeout` if no answer came in time,
/// which comes from `poll` later; `ec::shutting_down` when the runtime is lost.
/// A timeout below zero counts as zero. With `device_kind::host_virtual` no job
/// ends during a wait, but that of `advance`.
///
/// Threads: as the runtime. Cheap to make; the runtime outlives it.
class blocking_runtime {
public:
  using milliseconds = std::chrono::milliseconds;

  explicit blocking_runtime(runtime& rt) noexcept : runtime_(&rt) {
    // nop
  }

  blocking_runtime(const blocking_runtime&) = delete;
  blocking_runtime& operator=(const blocking_runtime&) = delete;

  // -- calls that have an answer: see `runtime` -------------------------------

  result<lookup_answer> lookup(std::vector<lookup_row> rows,
                               milliseconds timeout) {
    return await<lookup_answer>(runtime_->lookup(std::move(rows)), timeout);
  }

  result<finish_answer> finish(finish_call call, milliseconds timeout) {
    return await<finish_answer>(runtime_->finish(call), timeout);
  }

  result<step_plan> step(step_call call, milliseconds timeout) {
    return await<step_plan>(runtime_->step(std::move(call)), timeout);
  }

  result<call_done> reset(milliseconds timeout) {
    return await<call_done>(runtime_->reset(), timeout);
  }

  result<events_answer> take_events(milliseconds timeout) {
    return await<events_answer>(runtime_->take_events(), timeout);
  }

  result<stats_answer> get_stats(milliseconds timeout) {
    return await<stats_answer>(runtime_->get_stats(), timeout);
  }

  result<explain_answer> explain(request_id request, milliseconds timeout) {
    return await<explain_answer>(runtime_->explain(request), timeout);
  }

  /// @param timeout longer than `deadline`, to hear of jobs in flight
  result<call_done> sleep(milliseconds deadline, milliseconds timeout) {
    return await<call_done>(runtime_->sleep(deadline), timeout);
  }

  result<call_done> wake(milliseconds timeout) {
    return await<call_done>(runtime_->wake(), timeout);
  }

  /// @param timeout longer than `deadline`, to hear of jobs in flight
  result<call_done> shutdown(milliseconds deadline, milliseconds timeout) {
    return await<call_done>(runtime_->shutdown(deadline), timeout);
  }

  result<call_done> advance(nanoseconds_t now, milliseconds timeout) {
    return await<call_done>(runtime_->advance(now), timeout);
  }

  /// Waits for the answer to a call that was made before.
  /// @tparam Answer what the call is answered by; another type never comes
  /// @param ticket of the call
  template <class Answer>
  result<Answer> await(ticket_id ticket, milliseconds timeout) {
    using out = std::optional<result<Answer>>;
    return until<Answer>(
      [ticket](engine_event& event, bool& taken) -> out {
        if (auto* answer = std::get_if<Answer>(&event);
            answer != nullptr && answer->ticket == ticket) {
          taken = true;
          return std::move(*answer);
        }
        if (auto* failed = std::get_if<call_failed>(&event);
            failed != nullptr && failed->ticket == ticket) {
          taken = true;
          return std::move(failed->reason);
        }
        return std::nullopt;
      },
      timeout,
      [ticket](const std::string& span) {
        return "no answer to the call with ticket " + std::to_string(ticket)
             + " within " + span
             + ": it has its effect all the same, and its answer comes from "
               "poll, or await it again";
      });
  }

  /// Waits until the blocks of a request's load may be read (S7). The step
  /// behind its `allocate` has to be called before: no load begins without one.
  /// @returns `ec::device_failure` if the load failed: `poll` has the
  ///          `load_failed` then, which says what to compute again (R8)
  result<load_done> await_load(request_id request, milliseconds timeout) {
    using out = std::optional<result<load_done>>;
    return until<load_done>(
      [request](engine_event& event, bool& taken) -> out {
        if (auto* done = std::get_if<load_done>(&event);
            done != nullptr && done->request == request) {
          taken = true;
          return *done;
        }
        if (const auto* failed = std::get_if<load_failed>(&event);
            failed != nullptr && failed->request == request)
          return error{ec::device_failure,
                       "the load of request " + std::to_string(request)
                         + " failed: poll says from where on to compute"};
        return std::nullopt;
      },
      timeout,
      [request](const std::string& span) {
        return "the load of request " + std::to_string(request)
             + " has not ended within " + span
             + ": its end comes from poll, or await it again";
      });
  }

  // -- everything else --------------------------------------------------------

  /// All that was set aside, then what has arrived since. Never blocks.
  [[nodiscard]] std::vector<engine_event> poll() {
    auto out = std::exchange(aside_, {});
    seen_ = 0;
    for (auto& event : runtime_->poll()) {
      if (const auto* gone = std::get_if<runtime_lost>(&event))
        lost_ = gone->reason;
      out.push_back(std::move(event));
    }
    return out;
  }

  /// Blocks until `poll` has something to return.
  /// @returns false if `timeout` passed first
  [[nodiscard]] bool wait(milliseconds timeout) const {
    return !aside_.empty() || runtime_->wait(timeout);
  }

private:
  /// Waits for an event that is looked for.
  /// @param find returns something if an event is the one, and says whether it
  ///             took it
  template <class Out, class Find, class Text>
  result<Out> until(Find find, milliseconds timeout, Text text) {
    const auto take = [this] {
      for (auto& event : wait_access::poll(*runtime_))
        aside_.push_back(std::move(event));
      for (; seen_ < aside_.size(); ++seen_)
        if (const auto* gone = std::get_if<runtime_lost>(&aside_[seen_]))
          lost_ = gone->reason;
    };
    const auto look = [this, &find]() -> std::optional<result<Out>> {
      for (auto at = aside_.begin(); at != aside_.end(); ++at) {
        auto taken = false;
        if (auto out = find(*at, taken)) {
          if (taken) {
            aside_.erase(at);
            --seen_;
          }
          return out;
        }
      }
      if (lost_)
        return result<Out>{*lost_};
      return {};
    };
    if (auto found = look_until(*runtime_, timeout, take, look))
      return std::move(*found);
    return error{ec::timeout,
                 text(std::to_string(bounded_wait(timeout).count()) + " ms")};
  }

  runtime* runtime_;
  std::vector<engine_event> aside_;
  /// So many of them were looked at for news that concern every call.
  std::size_t seen_ = 0;
  std::optional<error> lost_;
};

/// The same for the rank side. Its events carry no tickets: a `rank_failed`
/// that comes while one of these waits is its answer, and its error is
/// returned, unless it is a notice (`ec::scheduler_unreachable`). So await a
/// step before you end it.
///
/// Threads: as the rank. The runtime outlives it.
class blocking_rank {
public:
  using milliseconds = std::chrono::milliseconds;

  explicit blocking_rank(rank& side) noexcept : rank_(&side) {
    // nop
  }

  blocking_rank(const blocking_rank&) = delete;
  blocking_rank& operator=(const blocking_rank&) = delete;

  /// @returns the error if the registration was refused
  result<kv_registered> register_kv(kv_memory memory, milliseconds timeout) {
    const auto before = take_all();
    rank_->register_kv(std::move(memory));
    auto out = await<kv_registered>("register_kv", timeout, before);
    if (out.ok() && out.value().reason.code != ec::none)
      return out.value().reason;
    return out;
  }

  result<kv_unregistered> unregister_kv(milliseconds timeout) {
    const auto before = take_all();
    rank_->unregister_kv();
    return await<kv_unregistered>("unregister_kv", timeout, before);
  }

  /// Until compute of the step may be enqueued, behind `step_ready::wait_for`.
  result<step_ready> begin_step(step_id step, std::string plan,
                                milliseconds timeout) {
    const auto before = take_all();
    rank_->begin_step(step, std::move(plan));
    // Where the scheduler delivers plans, it may have come before the call.
    return await<step_ready>(
      "begin_step", timeout, before,
      [step](const step_ready& x) { return x.step == step; }, 0);
  }

  result<rank_stats> get_stats(milliseconds timeout) {
    const auto before = take_all();
    rank_->get_stats();
    return await<rank_stats>("get_stats", timeout, before);
  }

  /// All that was set aside, then what has arrived since. Never blocks.
  [[nodiscard]] std::vector<rank_event> poll() {
    take_all();
    return std::exchange(aside_, {});
  }

  /// Blocks until `poll` has something to return.
  /// @returns false if `timeout` passed first
  [[nodiscard]] bool wait(milliseconds timeout) const {
    return !aside_.empty() || rank_->wait(timeout);
  }

private:
  /// @returns how many events are set aside
  std::size_t take_all() {
    for (auto& event : rank_->poll())
      aside_.push_back(std::move(event));
    return aside_.size();
  }

  /// @param before events that were there before the call
  template <class Answer>
  result<Answer> await(const char* what, milliseconds timeout,
                       std::size_t before) {
    return await<Answer>(
      what, timeout, before, [](const Answer&) { return true; }, before);
  }

  /// @param first where `Answer` may be found
  template <class Answer, class Predicate>
  result<Answer> await(const char* what, milliseconds timeout,
                       std::size_t before, Predicate fits, std::size_t first) {
    const auto take = [this] {
      for (auto& event : wait_access::poll(*rank_))
        aside_.push_back(std::move(event));
    };
    const auto look = [&]() -> std::optional<result<Answer>> {
      for (auto at = first; at < aside_.size(); ++at) {
        if (auto* answer = std::get_if<Answer>(&aside_[at]);
            answer != nullptr && fits(*answer)) {
          auto out = result<Answer>{std::move(*answer)};
          drop(at);
          return out;
        }
        if (auto* failed = std::get_if<rank_failed>(&aside_[at]);
            failed != nullptr && at >= before
            && failed->reason.code != ec::scheduler_unreachable) {
          auto out = result<Answer>{std::move(failed->reason)};
          drop(at);
          return out;
        }
      }
      return {};
    };
    if (auto found = look_until(*rank_, timeout, take, look))
      return std::move(*found);
    return error{ec::timeout, std::string{what} + " had no answer within "
                                + std::to_string(bounded_wait(timeout).count())
                                + " ms: it comes from poll, if it comes"};
  }

  void drop(std::size_t at) {
    aside_.erase(aside_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  rank* rank_;
  std::vector<rank_event> aside_;
};

} // namespace kvtide
