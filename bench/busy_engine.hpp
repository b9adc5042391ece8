// SPDX-License-Identifier: Apache-2.0

/// @file
/// An engine that gives the runtime no rest: while it makes the calls of one
/// step, the actors still work at the step before, and copies run. It uses
/// every call that an engine in service makes; bench/README.md names the
/// others.

#pragma once

#include "kvtide/runtime.hpp"

#include "bench/call_times.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvtide::bench {

struct busy_config {
  /// Requests at the same time; all but a few have a row in each step.
  std::size_t requests = 256;
  /// Tokens of a prompt, a multiple of 16; one block per chunk.
  token_count prompt = 8'192;
  /// Different prompts: whoever comes behind the first finds most of its own.
  std::uint64_t prompts = 16;
  /// Requests that end, and that come, in each step.
  std::size_t churn = 4;
  std::uint64_t block_bytes = 2'048;
  /// Steps from one reset to the next.
  std::uint64_t reset_every = 16;
  /// Steps from one `sleep`, with a `wake` behind it, to the next; 0 for none.
  std::uint64_t nap_every = 64;
  std::uint32_t actor_threads = 1;
};

/// One rank on the host device.
///
/// Thread-safety: none. Ends the program if the runtime does what it must not.
class busy_engine {
public:
  /// @param clock times the calls; outlives this object
  busy_engine(const busy_config& config, call_clock& clock);

  /// One turn: requests come and end, and a step with its rows is planned.
  void turn();

  /// Lets everything end. Of its calls only `shutdown` is timed.
  /// @returns counters of the whole run
  stats finish();

private:
  enum class stage : std::uint8_t { away, here, asked, loading, running };

  /// Where one request after the other lives, in blocks of its own.
  struct place {
    request_id id = 0;
    stage at = stage::away;
    bool scheduled_before = false;
    /// Its next row is its whole block table.
    bool resumes = false;
    /// Tokens; while nothing is scheduled, those that are loaded.
    token_count computed = 0;
    /// Blocks that the runtime knows of, and hashes.
    token_count blocks = 0;
    token_count hashes = 0;
    std::uint64_t prompt = 0;
  };

  rank& side();
  [[nodiscard]] std::vector<block_id>
  blocks_of(const place& where, token_count first, token_count end) const;
  place& place_of(request_id id);
  void arrive(place& where);
  void end(place& where);
  void send_hashes(place& where, token_count end, const char* name);
  void look_up(place& where);
  void roll_back(place& where);
  step_row schedule(place& where);
  void tell_outputs();
  void run_step();
  void nap();
  void end_compute();
  void await_done(ticket_id ticket);
  void listen();

  void on(const lookup_answer& x);
  void on(const load_done& x);
  void on(const load_failed& x);
  void on(const step_plan& x);
  void on(const stats_answer& x);
  void on(const call_done& x);
  void on(const call_failed& x);
  void on(const runtime_lost& x);
  void on(const kv_registered& x);
  void on(const kv_unregistered& x);
  void on(const step_ready& x);
  void on(const rank_failed& x);
  /// Nothing that this engine does anything about.
  template <class Event>
  void on(const Event&) {
    // nop
  }

  busy_config config_;
  call_clock& clock_;
  std::size_t blocks_per_place_;
  std::vector<char> memory_;
  runtime runtime_;
  std::vector<place> places_;
  /// Whose turns come.
  std::size_t next_end_ = 0;
  std::size_t next_roll_back_;
  request_id last_request_ = 0;
  std::uint64_t hits_ = 0;
  step_id last_step_ = 0;
  /// What lookups before this call have found is gone.
  ticket_id last_loss_ = 0;
  /// Ends since the last step.
  std::vector<finish_call> finished_;
  // What was heard.
  bool registered_ = false;
  step_id ready_ = 0;
  step_id planned_ = 0;
  ticket_id done_ = 0;
  bool counted_ = false;
  stats counters_;
};

} // namespace kvtide::bench
