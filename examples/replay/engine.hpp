// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/calls.hpp"

#include "examples/replay/batcher.hpp"
#include "examples/replay/job_watch.hpp"
#include "examples/replay/kv_span.hpp"
#include "examples/replay/lanes.hpp"
#include "examples/replay/options.hpp"
#include "examples/replay/outage_log.hpp"
#include "examples/replay/plan_log.hpp"
#include "examples/replay/report.hpp"
#include "examples/replay/runtime_link.hpp"
#include "examples/replay/sequence.hpp"
#include "examples/replay/trace_reader.hpp"
#include "examples/replay/trouble.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace kvtide::replay {

/// How far a replay is.
struct progress {
  std::size_t rows_ended = 0;
  std::size_t rows = 0;
  nanoseconds_t simulated = 0;
  std::uint64_t steps = 0;
};

/// Called after each step. Answers false to end the replay early: what is still
/// there is aborted.
using observer = std::function<bool(const progress&)>;

/// A model of a serving engine with paged KV memory and continuous batching. It
/// drives a runtime with the requests of a trace, and does what kernels would
/// do to KV memory at the simulated moment at which they would do it.
///
/// Time: a step is planned at `now_`. Its compute starts when the step before
/// and the copies it has to wait for are over, takes `step_ms`, and writes at
/// its end. With asynchronous scheduling two steps are in flight, so that a
/// step is planned before the output of the one before is known.
class engine {
public:
  /// Starts the runtime, and waits for ranks of other processes. Throws
  /// `replay_failure`.
  /// @param rows At least one; must outlive this object.
  /// @param net How other processes are reached, if there are any.
  /// @param join Called while it waits for them.
  engine(const replay_options& opts, const std::vector<trace_row>& rows,
         observer watch, const std::shared_ptr<network>& net = nullptr,
         const join_watch& join = nullptr);

  /// Replays everything, waits until nothing is in flight, and stops the
  /// runtime. Call it once. Throws `replay_failure`.
  [[nodiscard]] report run();

private:
  struct issued_step {
    batch work;
    nanoseconds_t end = 0;
  };

  // -- the loop
  // ------------------------------------------------------------------

  [[nodiscard]] bool over() const;
  /// More rows are to come.
  [[nodiscard]] bool has_rows() const;
  /// No row may arrive before a request has ended.
  [[nodiscard]] bool is_full() const;
  [[nodiscard]] nanoseconds_t next_arrival() const;
  void turn();
  void hear();
  void arrive();
  bool plan();
  void pass_time();
  void drain();

  // -- requests
  // ------------------------------------------------------------------

  void add(const sequence_ptr& seq);
  void add_row(std::size_t row);
  void send_hashes(sequence& seq);
  void end(const sequence_ptr& seq, finish_reason reason);
  void strike(moment when);
  void abort(const sequence_ptr& seq);
  void plan_revisit(const sequence& seq);

  // -- loads
  // -----------------------------------------------------------------------

  void load_ready(const sequence_ptr& seq, token_count tokens);
  void handle(const load_done& what);
  void handle(const load_failed& what);
  void handle(const blocks_released& what);

  // -- steps
  // -----------------------------------------------------------------------

  void issue(batch work);
  void compute(const batch& work);
  void complete();
  void take_outputs(const batch& work);
  void add_check(const sequence& seq, const block_part& part,
                 check_reason reason);
  void check(const sequence& seq, const std::vector<block_part>& parts,
             check_reason reason);

  // -- ranks that come back
  // -----------------------------------------------------------

  void take_back_ranks();

  [[nodiscard]] report make_report();

  replay_options opts_;
  const std::vector<trace_row>& rows_;
  observer watch_;
  runtime_time spent_;
  outage_log outages_;
  plan_log plans_;
  /// Has the memory that copies of the runtime read and write.
  std::optional<lanes> lanes_;
  runtime_link link_;
  /// Kept for its room.
  kv_work work_;
  std::uint64_t next_check_ = 0;
  tally counts_;
  batcher batcher_;
  trouble trouble_;
  job_watch jobs_;

  std::unordered_map<request_id, sequence_ptr> live_;
  /// Goes on counting when the trace starts again.
  std::size_t next_row_ = 0;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point next_issue_;
  std::chrono::steady_clock::time_point last_issue_;
  std::chrono::nanoseconds longest_gap_{0};
  std::size_t rows_ended_ = 0;
  request_id next_revisit_ = 0;
  std::multimap<nanoseconds_t, sequence_ptr> revisits_;
  std::vector<finish_call> finished_;

  nanoseconds_t now_ = 0;
  nanoseconds_t compute_end_ = 0;
  step_id next_step_ = 1;
  std::deque<issued_step> in_flight_;
  std::vector<std::uint64_t> step_ns_;
  bool interrupted_ = false;
  std::uint64_t foreign_releases_ = 0;
};

} // namespace kvtide::replay
