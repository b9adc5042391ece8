// SPDX-License-Identifier: Apache-2.0

/// @file
/// The engine that all programs about steps play: many requests of the same
/// length that decode, one token each per step.

#pragma once

#include "kvtide/calls.hpp"
#include "kvtide/ids.hpp"
#include "kvtide/options.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvtide::bench {

struct load_config {
  /// Running at the same time, at least 1.
  std::size_t requests = 1'024;
  /// Tokens of each when decoding begins; a multiple of 16.
  token_count context = 8'192;
  /// Of full attention: 16 tokens per block.
  std::uint32_t blocks_per_chunk = 1;
  /// A second group whose layers see `window` tokens only.
  bool sliding = false;
  token_count window = 1'024;
  std::uint32_t ranks = 1;
  rule_set rules = rule_set::safe;
  /// Requests that end in each step; as many come, and compute their prompts.
  std::size_t churn = 0;
};

inline constexpr token_count block_tokens = 16;

/// Host slots, whatever the number of requests and their length.
inline constexpr std::uint64_t pool_slots = 65'536;

[[nodiscard]] options options_of(const load_config& config);

/// Hashes `first` to `end` of a prompt; no two prompts share one.
[[nodiscard]] std::vector<prefix_hash>
hashes_of(std::uint64_t prompt, token_count first, token_count end);

/// What the engine says, in the order in which it says it. Requests are spread
/// evenly over the tokens of a chunk, so in each step as many cross a boundary
/// as in any other.
class engine_load {
public:
  explicit engine_load(const load_config& config);

  /// A request comes with its prompt.
  struct arrival {
    add_request add;
    extend_keys keys;
    /// Its whole prompt is computed; nobody else runs.
    step_call prefill;
  };

  [[nodiscard]] arrival arrive();

  /// One token of every request, and the prompts of those that come.
  struct decoding {
    std::vector<finish_call> ends;
    std::vector<add_request> arrivals;
    /// Hashes that are new.
    std::vector<extend_keys> keys;
    step_call step;
  };

  [[nodiscard]] decoding decode();

  /// Requests that completed a chunk in the last step.
  [[nodiscard]] std::size_t crossings() const noexcept {
    return crossings_;
  }

private:
  struct running {
    request_id id = 0;
    token_count computed = 0;
    token_count blocks = 0;
  };

  /// Tokens of the prompt of whoever takes a place.
  [[nodiscard]] token_count prompt_of(std::size_t place) const;

  add_request begin(std::size_t place);

  step_row schedule(running& now, token_count tokens, row_kind kind);

  /// The oldest ends, and another one takes its place.
  void replace_one(decoding& out);

  load_config config_;
  std::vector<running> requests_;
  /// Whose turn it is to end.
  std::size_t next_end_ = 0;
  request_id last_request_ = 0;
  step_id last_step_ = 0;
  block_id last_block_ = 0;
  std::size_t crossings_ = 0;
};

} // namespace kvtide::bench
