// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/calls.hpp"

#include "core/layout.hpp"
#include "messages/scheduler.hpp"
#include "tests/explore/device_blocks.hpp"
#include "tests/explore/findings.hpp"
#include "tests/explore/scenario.hpp"
#include "tests/explore/shadow.hpp"
#include "tests/explore/text_book.hpp"

#include <caf/make_message.hpp>
#include <caf/message.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::explore {

/// A serving engine that hands out blocks as greedily as it may. It keeps to
/// the protocol of the public headers, and complains where the runtime does
/// not.
class engine_model {
public:
  /// What it needs from whoever runs it.
  struct outlet {
    /// To the scheduler.
    std::function<void(caf::message)> tell;
    /// One of `n` things to do; zero is the plain one.
    std::function<std::size_t(std::size_t n)> decide;
    /// The engine has called `step`.
    std::function<void(step_id)> stepped;
    /// The engine hands a rank its plan.
    std::function<void(step_id, std::string)> deliver;
    /// The cache was reset by a call.
    std::function<void()> reset;
    /// All ranks take their memory away.
    /// @returns false if they never do
    std::function<bool()> leave;
    /// They have other memory now.
    std::function<void()> come_back;
    /// Questions that have to agree with a lookup.
    std::function<std::vector<ticket_id>(ticket_id lookup)> explained;
  };

  engine_model(const scenario& what, std::shared_ptr<const core::layout> shape,
               text_book& texts, shadow& memory, findings& found, outlet out);

  // -- what may happen --------------------------------------------------------

  /// @param nothing_else otherwise it stops after a few turns without work
  [[nodiscard]] bool can_turn(bool nothing_else) const;

  /// Goes on to where it has to wait for an answer.
  void turn();

  [[nodiscard]] bool can_take_outputs() const;

  /// Takes the results of the oldest step.
  void take_outputs();

  // -- what happens to it -----------------------------------------------------

  /// All ranks have computed a step.
  void computed(step_id step);

  void on(const lookup_answer& x);
  void on(const step_plan& x);
  void on(const finish_answer& x);
  void on(const call_failed& x);
  void on(const load_done& x);
  void on(const load_failed& x);
  void on(const blocks_released& x);
  void on(const call_done& x);
  void on(const explain_answer& x);

  /// No copy can touch the memory of a rank any more.
  void left(rank_id rank);

  /// It is registered again, and the scheduler was told.
  void came_back(rank_id rank);

  /// No step is called while a rank is away.
  void miss(rank_id rank) {
    away_.insert(rank);
  }

  void welcome(rank_id rank) {
    away_.erase(rank);
  }

  // -- its state --------------------------------------------------------------

  /// What a step computes whose results were not taken yet.
  [[nodiscard]] const std::vector<compute_row>& rows(step_id step) const {
    return flights_.at(step).rows;
  }

  /// All requests have ended, and no answer is owed.
  [[nodiscard]] bool over() const;

  /// After a run: another request with the text of each one that ended by
  /// itself. The loads show whether the runtime still serves.
  void add_probes();

  /// After that: a request with a text of its own, whose chunks are stored.
  void add_last_writer();

  /// And one with the same text, which has to find them.
  void add_last_reader();

  /// All blocks are free again.
  [[nodiscard]] bool holds_nothing() const {
    return blocks_.all_free();
  }

  // -- calls from outside the plan --------------------------------------------

  /// A client disconnects, or its request runs into an error.
  /// @returns false if the request is not alive
  bool abort(request_id id, finish_reason reason = finish_reason::abort);

  void call_reset();

  void call_stats();

  [[nodiscard]] std::vector<request_id> alive() const;

  /// "waiting", "asked", "loading", "ready", "running" or "ended".
  [[nodiscard]] std::string state_of(request_id id) const;

  /// Tokens that were known when a request ended, probes left out: equal in
  /// runs with the same fate.
  [[nodiscard]] const std::map<request_id, token_count>& endings() const {
    return endings_;
  }

private:
  enum class phase { waiting, asked, loading, ready, running, ended };

  struct life {
    phase state = phase::waiting;
    token_count prompt = 0;
    token_count known = 0;
    /// Tokens that the steps called so far compute.
    token_count planned = 0;
    /// Tokens at which it ends.
    token_count end = 0;
    token_count hashed = 0;
    /// Tokens that steps in flight will sample.
    token_count sampling = 0;
    /// Computed once the load is done.
    token_count loading = 0;
    promise_id promise = 0;
    bool scheduled_before = false;
    bool needs_table = true;
    bool probe = false;
    /// It had all its blocks when it ended.
    bool whole = false;
    /// What its probe has to find; none: anything.
    token_count must_hit = -1;
    /// Its lookup has to find at least a chunk.
    bool must_find = false;
    block_table table;
  };

  struct sample {
    request_id request = 0;
    bool sampled = false;
  };

  /// A step whose results were not taken, or whose plan did not come yet.
  struct flight {
    std::vector<compute_row> rows;
    std::vector<sample> samples;
    bool planned = false;
    bool computed = false;
    bool taken = false;
  };

  template <class Message>
  void call(Message message) {
    message.ticket = ++ticket_;
    out_.tell(caf::make_message(std::move(message)));
  }

  void add(request_id id, request_id like, token_count shared,
           token_count prompt, token_count end);
  void send_keys(request_id id);
  /// @returns whether it did something that no plan asks for
  bool whim();
  void arrive();
  void look_up();
  void admit();
  void plan_step();
  void schedule(request_id id, life& x, step_call& call, flight& made);
  bool make_room(request_id id, token_count tokens, step_call& call,
                 block_table& added);
  void preempt(request_id id, step_call& call);
  void end(request_id id, finish_reason reason);
  /// A load has its outcome.
  void take_outcome(job_id id);
  void probe(request_id id, request_id like, token_count shared,
             token_count prompt);
  void edit(request_id id);
  void check_explained(const lookup_answer& x);
  void call_sleep();
  void nap_turn();
  [[nodiscard]] bool can_leave() const;
  void leave();
  void lose_blocks();
  void call_wake();
  void forget_if_over(step_id step);
  [[nodiscard]] bool in_flight(request_id id) const;
  [[nodiscard]] std::vector<request_id> with(phase state) const;

  const scenario what_;
  std::shared_ptr<const core::layout> shape_;
  text_book& texts_;
  shadow& memory_;
  findings& found_;
  outlet out_;

  std::map<request_id, life> lives_;
  std::map<request_id, token_count> endings_;
  std::uint32_t arrived_ = 0;
  ticket_id ticket_ = 0;

  device_blocks blocks_;
  /// Tables of ended requests whose `finish` has no answer yet.
  std::map<request_id, block_table> leaving_;

  /// What the engine looks up at the beginning of a turn. Once blocks are
  /// allocated for what was found, anything may come before the step.
  enum class lookup_state { none, asked, answered, used };
  lookup_state lookup_ = lookup_state::none;
  std::vector<lookup_hit> hits_;
  std::map<ticket_id, explain_answer> explained_;
  std::optional<request_id> to_preempt_;

  /// Where it is between `sleep` and `wake`.
  enum class nap { awake, falling_asleep, asleep, leaving, returning, waking };
  nap nap_ = nap::awake;
  /// Of `sleep`, then of `wake`.
  ticket_id nap_ticket_ = 0;
  std::uint32_t nap_turns_ = 0;
  /// Ranks whose answers it waits for.
  std::set<rank_id> awaited_;
  std::set<rank_id> away_;
  std::uint32_t empty_turns_ = 0;

  step_id last_step_ = 0;
  /// The oldest step whose results were not taken.
  step_id first_open_ = 1;
  std::map<step_id, flight> flights_;
  /// Finished since the last step.
  std::vector<finish_call> finished_;
  /// Loads that the engine knows the end of.
  std::set<job_id> outcomes_;
  std::map<std::string, std::uint32_t> spent_;
  /// It has requests that came after a run.
  bool probed_ = false;
};

} // namespace kvtide::explore
