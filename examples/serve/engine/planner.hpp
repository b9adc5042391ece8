// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/calls.hpp"

#include "examples/serve/engine/block_tables.hpp"
#include "examples/serve/engine/compute_stream.hpp"
#include "examples/serve/engine/engine_options.hpp"
#include "examples/serve/engine/engine_stats.hpp"
#include "examples/serve/engine/sequence.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace serve {

/// What one request does in a step.
struct planned_row {
  sequence_ptr seq;
  /// `sequence::life` when this was planned.
  std::uint32_t life = 0;
  /// Tokens that are computed when the step is over.
  kvtide::token_count computed = 0;
  bool samples = false;
};

/// One step, and the calls that have to come before it.
struct step_plan {
  std::vector<kvtide::promise_id> declined;
  std::vector<kvtide::allocated> allocated;
  kvtide::step_call call;
  std::vector<planned_row> rows;
  /// As long as `rows`.
  std::vector<compute_row> compute;

  /// Nothing happens in it.
  [[nodiscard]] bool idle() const noexcept {
    return rows.empty() && allocated.empty() && call.preempted.empty();
  }
};

/// Decides what each step computes: running requests first, oldest first, then
/// waiting ones, within a budget of tokens and with the blocks there are. When
/// blocks run out the newest request gives its own back.
class planner {
public:
  planner(const engine_options& opts, block_tables& tables, engine_stats& stats)
    : opts_(opts), tables_(tables), stats_(stats) {
    // nop
  }

  /// A new request, or one that has lost its blocks.
  void enqueue(const sequence_ptr& seq);

  /// Waiting requests that could be admitted if it was known what the cache
  /// has. They are `phase::asking` from here on.
  /// @param next_step whoever was told to ask again does so in a later step
  [[nodiscard]] std::vector<sequence_ptr> to_ask(std::uint64_t next_step);

  /// Back from `to_ask`: `tokens` more can be loaded.
  void answered(sequence& seq, kvtide::token_count tokens,
                kvtide::promise_id promise);

  /// Back from `to_ask` without an answer.
  void ask_again(sequence& seq, std::uint64_t next_step);

  [[nodiscard]] step_plan plan();

  /// A load has ended: the request goes on behind its first `tokens` tokens.
  void load_ended(const sequence_ptr& seq, kvtide::token_count tokens);

  /// Takes all blocks of a request and lets it wait. Without effect on one that
  /// has none.
  void take_blocks(const sequence_ptr& seq);

  /// Forgets a request. Its blocks stay with it.
  void remove(const sequence& seq);

  /// Some request only waits for another step to ask again.
  [[nodiscard]] bool has_deferred() const;

  [[nodiscard]] std::size_t waiting() const noexcept {
    return waiting_.size();
  }

  [[nodiscard]] std::size_t running() const noexcept {
    return running_.size();
  }

  [[nodiscard]] std::size_t loading() const noexcept {
    return loading_;
  }

private:
  void plan_running(step_plan& next);
  void plan_waiting(step_plan& next);
  [[nodiscard]] bool admit(step_plan& next, const sequence_ptr& seq);
  void add_row(step_plan& next, const sequence_ptr& seq,
               kvtide::token_count count);
  void preempt(step_plan& next);
  /// Blocks that a request may need beyond those it has.
  [[nodiscard]] std::size_t missing(const sequence& seq) const;

  const engine_options& opts_;
  block_tables& tables_;
  engine_stats& stats_;
  /// By age: ids ascend. Those that ask or are answered are among the waiting.
  std::map<completion_id, sequence_ptr> waiting_;
  std::map<completion_id, sequence_ptr> running_;
  std::size_t loading_ = 0;
  kvtide::token_count budget_ = 0;
};

} // namespace serve
