// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/calls.hpp"

#include "examples/replay/kv_content.hpp"
#include "examples/replay/kv_tables.hpp"
#include "examples/replay/options.hpp"
#include "examples/replay/report.hpp"
#include "examples/replay/reservations.hpp"
#include "examples/replay/runtime_link.hpp"
#include "examples/replay/sequence.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace kvtide::replay {

/// What one request does in a step.
struct batch_row {
  sequence_ptr seq;
  /// `sequence::life` when this was planned.
  std::uint32_t life = 0;
  /// Tokens `[first, first + count)` are computed.
  token_count first = 0;
  token_count count = 0;
  /// Compute ends with a sampled token.
  bool samples = false;
  /// Ends in `batch::writes` and `batch::reads` of what belongs to this row;
  /// it starts where the row before it ends.
  std::size_t writes_end = 0;
  std::size_t reads_end = 0;
};

/// One step: the call to the runtime, and what compute does. Holds block ids of
/// its own, as launched kernels do: what happens to a request after the step
/// was planned does not change them.
struct batch {
  step_call call;
  std::vector<batch_row> rows;
  std::vector<block_part> writes;
  /// Blocks of the device's prefix cache that are used for the first time.
  std::vector<block_part> reads;
  /// Requests whose load starts with this step.
  std::vector<sequence_ptr> loading;
};

/// Decides what each step computes: running requests first, oldest first, then
/// waiting ones, under a token budget and with the blocks there are.
class batcher {
public:
  batcher(const replay_options& opts, runtime_link& link, tally& counts)
    : opts_(opts), link_(link), counts_(counts), tables_(opts.shape) {
    // nop
  }

  [[nodiscard]] const kv_tables& tables() const noexcept {
    return tables_;
  }

  /// Blocks that wait for `blocks_released`.
  [[nodiscard]] std::size_t reserved_blocks() const noexcept {
    return reserved_.size();
  }

  /// True if a request of this size could ever run.
  [[nodiscard]] bool fits(token_count tokens) const;

  /// The blocks of a request that hold its tokens `[first, last)`.
  [[nodiscard]] std::vector<block_part>
  parts_of(const sequence& seq, token_count first, token_count last) const;

  void enqueue(const sequence_ptr& seq);

  [[nodiscard]] batch plan();

  /// The first `tokens` tokens of a loading request are there: it runs.
  void load_ended(const sequence_ptr& seq, token_count tokens);

  /// A loading request has to start again with new blocks.
  void load_failed(const sequence_ptr& seq, const std::vector<block_id>& late);

  /// A rank does not have what was computed: all running requests lose their
  /// blocks, and nothing is found on the device.
  /// @returns who was preempted
  [[nodiscard]] std::vector<request_id> compute_all_again();

  /// The load of a request ended that has to start again all the same.
  void load_wasted(const sequence_ptr& seq);

  /// Lets others find what became known.
  void publish(sequence& seq);

  /// Forgets a request, except for the blocks that are still `held`.
  void remove(const sequence_ptr& seq, const std::vector<block_id>& held);

  /// @returns false if some of the blocks were not reserved for the request.
  [[nodiscard]] bool released(request_id request,
                              const std::vector<block_id>& blocks);

private:
  enum class verdict : std::uint8_t { admitted, later, no_room };

  void plan_running(batch& next);
  void plan_waiting(batch& next);
  verdict admit(batch& next, const sequence_ptr& seq);
  void add_row(batch& next, const sequence_ptr& seq, token_count count);
  void add_parts(const sequence& seq, token_count first, token_count last,
                 std::vector<block_part>& parts) const;
  void tell_blocks(const sequence& seq, token_count external);
  void preempt(const sequence_ptr& seq);
  void reserve(request_id request, const std::vector<block_id>& blocks);
  [[nodiscard]] static block_pool::reuse order_of(const sequence& seq) noexcept;

  const replay_options& opts_;
  runtime_link& link_;
  tally& counts_;
  kv_tables tables_;
  std::vector<sequence_ptr> running_;
  std::deque<sequence_ptr> waiting_;
  std::size_t loading_ = 0;
  /// For the next plan.
  std::vector<request_id> preempted_;
  token_count budget_ = 0;
  reservations reserved_;
};

} // namespace kvtide::replay
