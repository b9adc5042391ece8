// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/network.hpp"
#include "kvtide/options.hpp"

#include "examples/replay/geometry.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kvtide::replay {

/// Where the KV memory lies and who copies it.
enum class device_choice : std::uint8_t {
  /// Plain memory, and threads.
  host,
  cuda,
  /// A GPU if there is one, else the host. Not beyond `choose_device`.
  automatic,
};

/// What the command line can say. The defaults are those of the program.
struct replay_options {
  std::string trace;
  /// First rows of the trace to replay; zero means all.
  std::uint64_t rows = 0;
  std::uint64_t seed = 1;

  // -- model
  // -------------------------------------------------------------------

  geometry shape;
  std::uint32_t ranks = 1;
  /// Names the model.
  std::string fingerprint = "kvtide-replay";
  /// Tokens per step.
  std::uint32_t token_budget = 8'192;
  /// Requests that run or load at the same time.
  std::uint32_t max_running = 256;
  /// Compute time of a step, in simulated milliseconds.
  std::uint32_t step_ms = 50;
  /// Plan a step while the step before computes.
  bool async = true;
  /// With the real clock: wall time that a step takes at least.
  std::uint32_t pace_us = 0;
  /// With the real clock: the trace starts again and again until so much time
  /// has passed.
  std::uint32_t repeat_seconds = 0;

  // -- trouble
  // -----------------------------------------------------------------

  /// Share of requests that are aborted.
  double abort_rate = 0.02;
  /// Share of requests whose blocks are reused at once when they end.
  double quick_reuse = 0.25;
  /// Share of the finished ones of these whose whole text is asked for again,
  /// which reads back what was stored for its output.
  double revisit_rate = 0.2;

  // -- runtime
  // -----------------------------------------------------------------

  rule_set rules = rule_set::safe;
  eviction_policy policy = eviction_policy::lru;
  std::uint32_t blocks_per_chunk = 8;
  std::uint64_t host_bytes = 64u << 20;
  /// `host_virtual` or `host`: whether time is simulated. Real with a GPU.
  device_kind clock = device_kind::host_virtual;
  device_choice device = device_choice::host;
  /// Of the GPU that all ranks share.
  int device_index = 0;
  cuda_options cuda;
  plan_delivery delivery = plan_delivery::direct;
  std::uint32_t copy_latency_us = 20'000;
  /// Bytes per second; none means what `default_copy_tokens` tokens have.
  std::optional<std::uint64_t> copy_bandwidth;

  // -- ranks elsewhere
  // -----------------------------------------------------------------

  /// One per rank; empty if all live here.
  std::vector<worker_place> workers;
  network_options network;
  std::string pool_name;
  /// Sockets on which ranks elsewhere hear of steps: one for each of them, or
  /// one folder.
  std::vector<std::string> lanes;
  std::uint32_t join_timeout_s = 60;

  // -- output
  // ------------------------------------------------------------------

  /// File; empty means none.
  std::string plan_log;
  /// File, or "-" for standard output; empty means none.
  std::string json;
  bool progress = true;

  [[nodiscard]] bool simulated() const noexcept {
    return clock == device_kind::host_virtual;
  }

  [[nodiscard]] bool on_gpu() const noexcept {
    return device == device_choice::cuda;
  }

  /// For `kvtide::options::device`.
  [[nodiscard]] device_kind kind() const noexcept {
    return on_gpu() ? device_kind::cuda : clock;
  }

  [[nodiscard]] std::uint32_t ranks_here() const;

  [[nodiscard]] bool has_remote_ranks() const {
    return ranks_here() < ranks;
  }

  /// Socket of a rank that lives elsewhere; empty if it lives here.
  [[nodiscard]] std::string lane_of(rank_id rank) const;

  /// How long the engine waits for a process that does not answer. Longer than
  /// the library takes to notice a cut: until then it may owe a rank the plan
  /// of a step.
  [[nodiscard]] std::chrono::milliseconds lane_limit() const {
    return network.detection + std::chrono::milliseconds{700};
  }

  static constexpr std::uint64_t default_copy_tokens = 131'072;

  [[nodiscard]] std::uint64_t copy_bytes_per_second() const noexcept {
    return copy_bandwidth.value_or(default_copy_tokens * shape.token_bytes()
                                   * shape.layers * geometry::planes);
  }
};

/// The socket of a rank in a folder of them.
[[nodiscard]] std::string socket_in(const std::string& folder, rank_id rank);

/// The command line asked for something else than a replay, or was wrong.
struct early_exit {
  int code = 0;
  std::string text;
};

/// Parses and checks the command line. Prints nothing.
[[nodiscard]] std::variant<replay_options, early_exit>
parse_options(int argc, const char* const* argv);

/// @returns the word for the command line and the report.
[[nodiscard]] const char* to_word(rule_set rules) noexcept;
[[nodiscard]] const char* to_word(eviction_policy policy) noexcept;
[[nodiscard]] const char* to_word(device_kind clock) noexcept;
[[nodiscard]] const char* to_word(plan_delivery delivery) noexcept;
[[nodiscard]] const char* to_word(device_choice device) noexcept;

} // namespace kvtide::replay
