// SPDX-License-Identifier: Apache-2.0

/// @file
/// A whole runtime on the test's own thread: real scheduler, requests, cache
/// manager and workers, and a test that plays the engine, the rank side and the
/// device. It speaks to them in messages only. Plans read like hazards are
/// told: `S0{R#0<-1}` stores chunk 0 of R from block 1, `L1{P#0->4}` loads.

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/calls.hpp"
#include "kvtide/options.hpp"

#include "tests/support/turn.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvtide::test {

struct system_config {
  /// `idle_delay` is the scheduler's; the workers have their own below.
  options opts;
  /// One per rank.
  std::vector<std::uint64_t> slots{64};
  std::chrono::milliseconds worker_idle{1};
};

/// One full-attention group, 4 tokens per block, 1 block per chunk, one rank.
/// The scheduler's idle rule is as good as off.
[[nodiscard]] options plain_options(rule_set rules = rule_set::safe);

/// What a lookup answers with "ask again".
inline constexpr auto defer = std::optional<token_count>{};

class test_system {
public:
  explicit test_system(system_config config);

  explicit test_system(const options& opts, std::uint64_t slots = 64);

  test_system(const test_system&) = delete;

  test_system& operator=(const test_system&) = delete;

  ~test_system();

  // -- the engine -------------------------------------------------------------

  /// Sends the keys of the prompt as well.
  void add(request_id id, token_count prompt_tokens, const add_with& how = {});

  [[nodiscard]] std::optional<token_count> lookup(request_id id,
                                                  token_count local = 0);

  /// Of the last lookup; zero for none.
  [[nodiscard]] promise_id promise(request_id id) const;

  void decline(promise_id promise);

  /// Blocks that lie in `local` whole carry content, unless told otherwise.
  void alloc(request_id id, const block_lists& blocks, token_count external,
             std::optional<std::vector<std::vector<std::uint8_t>>> hashed
             = std::nullopt);

  /// Plans a step. Its compute goes on as soon as each rank may.
  std::string step(const turn& what = {});

  /// `tokens` sampled tokens become known, and their keys are sent.
  void out(request_id id, token_count tokens);

  /// With the progress of the engine's own book.
  /// @returns the blocks that stay reserved
  std::vector<block_id> finish(request_id id, finish_reason reason);

  /// Rolls back, as after rejected drafts.
  void truncate(request_id id, token_count tokens);

  /// @returns jobs in flight
  std::vector<job_id> reset();

  void shutdown(std::chrono::milliseconds deadline);

  /// The engine's blocks are gone.
  void sleep(std::chrono::milliseconds deadline = std::chrono::hours{1});

  /// What a `sleep` or `shutdown` was answered with, the first that was not
  /// taken; none if none was.
  [[nodiscard]] std::optional<std::vector<job_id>> ended();

  /// @returns whether it was done
  [[nodiscard]] bool wake();

  [[nodiscard]] explain_answer explain(request_id id);

  void raw_explain(request_id id);

  void unregister(rank_id rank);

  void register_again(rank_id rank);

  /// Sends a call as it is and does not wait.
  void raw_add(const add_request& call);

  void raw_extend(const extend_keys& call);

  void raw_allocate(const allocated& call);

  void raw_step(const step_call& call);

  /// Sends the same call again, unchanged.
  void raw_finish(const finish_call& call);

  void raw_outputs(const outputs_call& call);

  [[nodiscard]] token_count known(request_id id) const;

  [[nodiscard]] token_count computed(request_id id) const;

  /// Overrides what the next calls say.
  void set_computed(request_id id, token_count tokens);

  /// From now on calls only enter the scheduler's mailbox, and their answers
  /// are empty.
  void queue_calls();

  /// Lets actors handle one message after the other, in an order that `seed`
  /// chooses, until none is left.
  void run_shuffled(std::uint32_t seed);

  /// All that the engine has heard since the start, in order.
  [[nodiscard]] const std::vector<std::string>& heard() const;

  /// From now on breaches of the order, wrong calls included, do not fail the
  /// test.
  void expect_breaches();

  /// From now on wrong calls do not fail the test.
  void expect_wrong_calls();

  /// Breaches since the last call, e.g. "S9 a report came twice, or for an
  /// unknown job: job 3, rank 0, incarnation 1".
  [[nodiscard]] std::vector<std::string> breaches();

  /// Some job was in flight when the last step was planned.
  [[nodiscard]] bool pending_work() const;

  /// What came unasked since the last call, e.g. "load_done R 1".
  [[nodiscard]] std::vector<std::string> notices();

  /// Events of the cache since the last call, e.g. "stored R#1 behind R#0, 4 of
  /// 4 tokens" or "removed R#1".
  [[nodiscard]] std::vector<std::string> events();

  // -- rank side and device ---------------------------------------------------

  /// From now on compute of a step ends only by `end_compute`.
  void hold_compute();

  /// Ends the oldest step whose compute may go on, on every rank.
  void end_compute();

  /// Compute of the last step may go on, on every rank or on one.
  [[nodiscard]] bool computes(std::optional<rank_id> rank = std::nullopt) const;

  /// Ends a copy. A store that waits for the next step is submitted by the
  /// workers' idle rule first.
  void done(job_id job, const ending& how = {});

  void done(const std::vector<job_id>& jobs);

  void fail(job_id job) {
    done(job, {std::nullopt, true, 0});
  }

  /// Jobs with the device of a rank that it may end now, ascending.
  [[nodiscard]] std::vector<job_id> copies(rank_id rank = 0) const;

  /// All copies in flight miss their deadline.
  void pass_deadline();

  void pass(std::chrono::nanoseconds time);

  /// What the device was told since the last call, e.g. "submit 0 1", "fence
  /// 0".
  [[nodiscard]] std::vector<std::string> device_log(rank_id rank = 0);

  /// The plans that the scheduler sent to a rank, as bytes, since the start.
  [[nodiscard]] const std::vector<std::string>& plans(rank_id rank) const;

  /// Handles one message after the other until a rank has the next plan.
  /// @returns true if the engine has not been answered by then
  bool plan_comes_before_the_answer(const turn& what);

  /// A report that no worker sent.
  void report(job_id job, rank_id rank, job_status status,
              incarnation_id incarnation = 1);

  /// The worker, then the device, as when the process of a rank ends.
  void kill_rank(rank_id rank);

  /// The next such report of a rank is lost on its way.
  void lose_report(rank_id rank, job_id job, job_status status);

  /// The next stores that are planned never reach a rank.
  void lose_stores(rank_id rank);

  /// Outcomes that the worker of a rank could repeat.
  [[nodiscard]] std::size_t remembered(rank_id rank = 0);

  /// The device, and the copies that it makes, live on.
  void kill_worker(rank_id rank);

  /// Ends a device that `kill_worker` left.
  void kill_orphan(rank_id rank);

  /// Kills the actor of a request after so many messages of the next call.
  void doom_request(request_id id, std::size_t messages = 0);

  /// The same for the cache manager.
  void doom_cache(std::size_t messages = 0);

  /// Lets no message come between.
  void kill_cache();

  /// A copy fails on all ranks, and the cache manager dies after so many
  /// messages of that.
  void fail_and_kill_cache(job_id job, std::size_t messages);

  void restart_rank(rank_id rank, std::uint64_t slots);

  // -- what is there ----------------------------------------------------------

  [[nodiscard]] stats counters();

  [[nodiscard]] std::vector<request_id> tracked();

  [[nodiscard]] std::vector<job_id> jobs();

  /// Per group: first chunk not yet considered stored.
  [[nodiscard]] std::vector<std::size_t> next(request_id id);

  [[nodiscard]] std::vector<block_id> watched();

  /// Chunk of a request in the host pool: "miss", "pending" or "hit".
  [[nodiscard]] std::string host(request_id id, std::size_t chunk,
                                 group_id group = 0);

  /// Idle chunks from the oldest to the newest.
  [[nodiscard]] std::vector<std::string> idle_chunks();

  /// Copies that moved something else than their key says, e.g. "S0 R#1".
  [[nodiscard]] const std::vector<std::string>& wrong_bytes() const;

  /// No request, job, promise, watch, pin or quarantined slot is left.
  [[nodiscard]] bool empty();

private:
  struct state;

  std::unique_ptr<state> st_;
};

} // namespace kvtide::test
