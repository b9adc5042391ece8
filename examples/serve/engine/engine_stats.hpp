// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/answers.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace serve {

/// Counters since the start, and what is there now.
struct engine_stats {
  // -- now --------------------------------------------------------------------
  /// Submitted, and not admitted yet or preempted.
  std::uint64_t waiting = 0;
  /// With a load in flight.
  std::uint64_t loading = 0;
  /// With blocks, in one of the next steps.
  std::uint64_t running = 0;
  std::uint64_t device_blocks = 0;
  /// Blocks that nobody uses; what they hold may still be found.
  std::uint64_t free_blocks = 0;
  /// Blocks of nobody that a load may still write.
  std::uint64_t held_blocks = 0;
  /// False once the cache was lost, or if offloading is off.
  bool cache_alive = false;

  // -- since the start --------------------------------------------------------
  std::uint64_t submitted = 0;
  std::uint64_t refused = 0;
  std::uint64_t completed = 0;
  std::uint64_t aborted = 0;
  /// The same by what the request was doing: waiting for its first admission,
  /// for the answer to a lookup, for a load, for a step, for its next admission
  /// after it was preempted.
  std::uint64_t aborted_queued = 0;
  std::uint64_t aborted_asking = 0;
  std::uint64_t aborted_loading = 0;
  std::uint64_t aborted_running = 0;
  std::uint64_t aborted_preempted = 0;
  /// Times that the engine's thread woke up.
  std::uint64_t turns = 0;
  std::uint64_t steps = 0;
  /// Tokens that were put through the model, and tokens of answers.
  std::uint64_t computed_tokens = 0;
  std::uint64_t output_tokens = 0;
  /// Of prompts, at each admission: tokens, how many of them the device had,
  /// and how many were loaded from the host.
  std::uint64_t prompt_tokens = 0;
  std::uint64_t device_hit_tokens = 0;
  std::uint64_t host_hit_tokens = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t loads_done = 0;
  std::uint64_t loads_failed = 0;
  /// `cache_lost` and `rank_lost`: the cache went on.
  std::uint64_t cache_troubles = 0;
  /// Calls that the runtime refused, and what it said of the last one.
  std::uint64_t refused_calls = 0;
  std::string last_trouble;

  // -- what the cache said ----------------------------------------------------
  /// Zero until the cache was asked.
  kvtide::stats cache;
  kvtide::rank_stats rank;
};

/// What `stop` left undone.
struct stop_report {
  /// Everybody was served.
  bool drained = false;
  /// Requests that were aborted because the deadline passed.
  std::uint64_t aborted_requests = 0;
  /// Copies that were still running; nothing if the cache could not say, so
  /// that some may.
  std::optional<std::uint64_t> jobs_in_flight;
  /// The counters at the end: what the cache still tracked, if anything.
  engine_stats last;
};

} // namespace serve
