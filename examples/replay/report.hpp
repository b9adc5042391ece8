// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/ids.hpp"

#include "examples/replay/kv_content.hpp"
#include "examples/replay/options.hpp"
#include "examples/replay/outage_log.hpp"
#include "examples/replay/runtime_time.hpp"
#include "examples/replay/sequence.hpp"
#include "examples/replay/trace_reader.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::replay {

/// Everything the model counts while it runs.
struct tally {
  // -- requests
  // ------------------------------------------------------------------

  std::uint64_t added = 0;
  std::uint64_t finished = 0;
  std::uint64_t revisits = 0;
  /// Longer than the device has memory for.
  std::uint64_t ignored = 0;
  /// By the phase in which the abort came.
  std::array<std::uint64_t, live_phases> aborted{};
  std::uint64_t preemptions = 0;
  /// Requests that were preempted at least once.
  std::uint64_t preempted = 0;
  std::uint64_t output_tokens = 0;

  // -- prompts, at first admission
  // -------------------------------------------------

  token_count prompt_tokens = 0;
  token_count device_tokens = 0;
  token_count loaded_tokens = 0;

  // -- jobs
  // ------------------------------------------------------------------------

  std::uint64_t stored_bytes = 0;
  std::uint64_t loaded_bytes = 0;
  std::uint64_t load_failures = 0;
  /// Lookups that were answered "ask again".
  std::uint64_t deferrals = 0;
  /// Blocks that stayed reserved for a while after their request had ended.
  std::uint64_t held_blocks = 0;

  // -- overlap
  // -----------------------------------------------------------------------

  std::uint64_t flush_steps = 0;
  std::uint64_t flushed_jobs = 0;
  /// Jobs in flight when a flush set came, summed over those steps.
  std::uint64_t in_flight_at_flush = 0;
  std::uint64_t max_in_flight_at_flush = 0;
  /// Steps whose compute was bound to wait for a flush.
  std::uint64_t flush_waits = 0;
  /// Those whose compute started later because of it.
  std::uint64_t flush_delays = 0;
  /// Jobs seen complete two or more steps after they were submitted.
  std::uint64_t late_completions = 0;
  /// Load jobs that started while a store job was in flight.
  std::uint64_t loads_overlapping_stores = 0;

  // -- ranks that were away
  // ------------------------------------------------------------------------

  /// Steps while a rank was lost, so that nothing was found or stored.
  std::uint64_t steps_without_cache = 0;

  // -- time
  // --------------------------------------------------------------------------

  std::uint64_t steps = 0;
  std::uint64_t empty_steps = 0;
  nanoseconds_t simulated = 0;

  [[nodiscard]] std::uint64_t all_aborted() const noexcept;

  /// Prompt tokens that nobody had to compute.
  [[nodiscard]] token_count hit_tokens() const noexcept {
    return device_tokens + loaded_tokens;
  }
};

/// What nobody may have forgotten when all is over.
struct remainder {
  std::uint64_t requests = 0;
  std::uint64_t blocks = 0;
  /// Blocks that wait to be released.
  std::uint64_t reserved = 0;
  std::uint64_t jobs_at_shutdown = 0;
};

/// Wall time; differs from run to run.
struct timing {
  /// From the first request until the runtime has stopped.
  double wall_seconds = 0;
  /// From the end of the last request until nothing was in flight.
  double drain_seconds = 0;
  /// The longest time between the starts of two steps, whatever the engine
  /// waited for meanwhile.
  std::chrono::nanoseconds longest_gap{0};
  /// How much of it the engine's thread spent in the runtime.
  runtime_time runtime;
  /// Spent in the runtime, per step, in nanoseconds; sorted.
  std::vector<std::uint64_t> step_ns;

  /// Microseconds that this share of the steps did not exceed.
  [[nodiscard]] double step_us(double share) const noexcept;

  /// Part of the wall time, 0 to 1.
  [[nodiscard]] double share(std::chrono::nanoseconds part) const noexcept;
};

/// The result of a replay.
struct report {
  replay_options opts;
  std::size_t rows = 0;
  ideal_hits ideal;
  bool interrupted = false;
  tally counts;
  /// What the device said of itself and the host pool.
  std::vector<std::string> notes;
  std::uint64_t slots = 0;
  std::uint64_t slot_bytes = 0;
  std::array<std::uint64_t, check_reasons> compared_bytes{};
  std::array<std::uint64_t, check_reasons> mismatches{};
  std::optional<mismatch> first_mismatch;
  stats runtime;
  copy_work copies;
  /// What one thread reaches with fragments of the same size; zero if it was
  /// not measured.
  double memcpy_bytes_per_second = 0;
  std::uint64_t failed_calls = 0;
  std::string first_failure;
  std::uint64_t overloads = 0;
  remainder left;
  timing times;
  /// Ranks that were away, in order.
  std::vector<outage> outages;

  [[nodiscard]] std::uint64_t all_compared_bytes() const noexcept;
  [[nodiscard]] std::uint64_t all_mismatches() const noexcept;
  /// 0 to 1, as the next one.
  [[nodiscard]] double hit_rate() const noexcept;
  [[nodiscard]] double ideal_hit_rate() const noexcept;
  /// Bytes by the wall time that a stream spent on copying them. Empty if
  /// nothing was copied.
  [[nodiscard]] std::optional<double> copy_bytes_per_second() const noexcept;
  /// The same by that of memcpy. Empty if either was not measured.
  [[nodiscard]] std::optional<double> copy_to_memcpy() const noexcept;
  /// What should be gone, and breaches of the protocol, by name: all zero if
  /// all is well.
  [[nodiscard]] std::vector<std::pair<const char*, std::uint64_t>>
  leftovers() const;
  /// The sum of `leftovers`.
  [[nodiscard]] std::uint64_t left_over() const;
  /// 0 if all is well, 1 for mismatches or something left over, 130 if
  /// interrupted.
  [[nodiscard]] int exit_code() const;
};

/// For people; ends with a newline.
[[nodiscard]] std::string to_text(const report& what);

/// For programs: all that depends on wall time lies under "timing", the rest is
/// the same for the same options. Ends with a newline.
[[nodiscard]] std::string to_json(const report& what);

} // namespace kvtide::replay
