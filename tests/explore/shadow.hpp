// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/job.hpp"

#include "core/layout.hpp"
#include "messages/gpu_worker.hpp"
#include "tests/explore/copy_desk.hpp"
#include "tests/explore/findings.hpp"
#include "tests/explore/rank_memory.hpp"
#include "tests/explore/text_book.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kvtide::explore {

/// One request's part of a step's compute: it reads the tokens before `from`
/// and writes those before `to`.
struct compute_row {
  request_id request = 0;
  token_count from = 0;
  token_count to = 0;
  std::vector<std::vector<block_id>> table;
};

/// Knows what every block and slot truly contains and who touches it, and names
/// the rule that somebody breaks. The bytes are real: what it writes in the
/// role of compute is what the copies move.
class shadow : public copy_watcher {
public:
  shadow(std::shared_ptr<const core::layout> shape, text_book& texts,
         findings& found, std::uint32_t ranks, std::uint32_t blocks);

  [[nodiscard]] rank_memory& memory(rank_id rank) {
    return *ranks_[rank].memory;
  }

  // -- what the scheduler says ------------------------------------------------

  void planned(rank_id rank, const msg::begin_step& plan);

  void planned(rank_id rank, const msg::stores& plan);

  void reset();

  // -- ranks ------------------------------------------------------------------

  /// Where a rank's host pool lies.
  void joined(rank_id rank, const std::byte* pool, std::uint64_t slot_bytes);

  /// A new life of a rank that died: it knows of no job.
  void starts_again(rank_id rank);

  /// What this rank was told and has not handed over may fail there, as if it
  /// had not been told.
  void cut_off(rank_id rank);

  /// The rank says that a job is over which may never have been handed over.
  void gave_up(rank_id rank, job_id id);

  /// @param at_once without a fence in the stream
  /// @param excused tells of jobs that the rank ended without handing them over
  void ready(rank_id rank, step_id step, bool at_once,
             const std::function<bool(job_id)>& excused);

  /// Compute of the step is enqueued.
  void enqueued(rank_id rank, step_id step, std::vector<compute_row> rows);

  /// Of the step that was enqueued first and has not ended.
  void compute_starts(rank_id rank);

  void compute_ends(rank_id rank);

  /// Stores may be handed over without a step (S13).
  void time_passed();

  /// No step follows this one: those of a rank that has enqueued it may, too.
  void paused(rank_id rank, step_id step) {
    ranks_[rank].paused_behind = step;
  }

  /// The engine was told that nothing is in flight.
  void slept();

  /// Nobody owns the memory for a while: what was in it is gone.
  void lose_memory(rank_id rank);

  // -- copies -----------------------------------------------------------------

  void submitted(rank_id rank, const gpu::copy_job& what) override;

  void starts(rank_id rank, job_id id) override;

  void ends(rank_id rank, job_id id, bool ok) override;

  void fence_asked(rank_id rank, step_id step,
                   const std::vector<job_id>& jobs) override;

  /// A rank says that a job is complete.
  void reported(rank_id rank, job_id id);

  // -- what the engine is told ------------------------------------------------

  /// Compute may read what the job loaded.
  void load_announced(job_id id);

  /// The engine may hand these blocks out.
  void released(const std::vector<block_id>& blocks);

  // -- the end ----------------------------------------------------------------

  /// Nothing can happen any more.
  void check_rest();

private:
  struct compute {
    step_id step = 0;
    std::vector<compute_row> rows;
  };

  struct rank_view {
    std::unique_ptr<rank_memory> memory;
    const std::byte* pool = nullptr;
    std::uint64_t slot_bytes = 0;
    /// What this life of the rank was told of.
    std::set<job_id> told;
    std::set<job_id> submitted;
    /// It had not handed these over when its connection was cut.
    std::set<job_id> cut_off;
    /// Ended well.
    std::set<job_id> whole;
    /// With the device, by id; true: half made.
    std::map<job_id, bool> copies;
    /// The first step of this life; what was planned in an earlier one fails.
    std::optional<step_id> first;
    /// The last step whose plan came, and whose compute is enqueued.
    std::optional<step_id> begun;
    std::optional<step_id> enqueued;
    /// Enqueued and not ended, in order; the first may be running.
    std::deque<compute> stream;
    /// Stores that have read something else than they should. Of no harm as
    /// long as nobody takes them for good.
    std::map<job_id, finding> tainted;
    /// By slot: the last store that was handed over.
    std::map<slot_id, job_id> writers;
    /// By block: the last step that has written it.
    std::map<block_id, step_id> last_writes;
    bool time_passed = false;
    std::optional<step_id> paused_behind;
  };

  struct fact {
    job work;
    step_id step = 0;
    std::uint64_t resets = 0;
  };

  [[nodiscard]] const job* find(job_id id) const;

  void learn(rank_id rank, const job& work, step_id step);

  void check_whole(job_id load, const job_row& row);

  [[nodiscard]] bool flushed_in_own_step(job_id id) const;

  /// "store 3 (R1#0)"
  [[nodiscard]] std::string name(job_id id) const;

  [[nodiscard]] static std::string name(rank_id rank);

  void check_store_source(rank_id rank, const fact& what);

  void check_load_source(rank_id rank, const fact& what);

  [[nodiscard]] finding blame_store(rank_id rank, const fact& what,
                                    const job_row& row, block_id block) const;

  [[nodiscard]] finding blame_load(rank_id rank, const fact& what,
                                   const job_row& row) const;

  void check_reads(rank_id rank, const compute& what);

  void check_against_copies(rank_id rank, const compute& what);

  void check_against_compute(rank_id rank, const fact& what);

  void check_slots(rank_id rank, const fact& what);

  void write(rank_id rank, const compute& what, std::uint32_t layer);

  void report(const char* rule, const std::string& text) {
    found_.report(rule, text);
  }

  std::shared_ptr<const core::layout> shape_;
  text_book& texts_;
  findings& found_;
  std::vector<rank_view> ranks_;
  std::map<job_id, fact> facts_;
  /// First step that flushes a job.
  std::map<job_id, step_id> flushed_;
  std::map<step_id, std::vector<job_id>> flushes_;
  std::uint64_t resets_ = 0;
};

} // namespace kvtide::explore
