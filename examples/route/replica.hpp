// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/blocking.hpp"
#include "kvtide/runtime.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kvtide::route {

/// What all replicas have in common.
struct replica_shape {
  /// Tokens of a chunk, which is one block and has one hash here.
  std::int32_t chunk_tokens = 128;
  /// Of the host pool.
  token_count pool_tokens = 4'000'000;
  /// Of KV memory on the device; all of it belongs to requests that run.
  token_count device_tokens = 1'500'000;
  std::size_t max_running = 256;
  /// Prompt tokens that a step computes at most.
  token_count step_tokens = 32'768;
  nanoseconds_t step = 200'000'000;
  /// What a request takes for each token of its output.
  nanoseconds_t output_token = 25'000'000;

  [[nodiscard]] options runtime_options() const;
};

/// A prompt on its way through a replica.
struct prompt {
  request_id id = 0;
  nanoseconds_t arrival = 0;
  token_count tokens = 0;
  token_count output = 0;
  std::vector<prefix_hash> hashes;
  /// What the directory said that the replica has; none if it was not asked.
  token_count promised = -1;
  bool added = false;
};

/// What a replica did.
struct replica_tally {
  std::uint64_t prompts = 0;
  token_count prompt_tokens = 0;
  token_count hit_tokens = 0;
  token_count computed_tokens = 0;
  std::uint64_t load_failures = 0;
  /// Prompts of which the lookup found less than was promised, and how much.
  std::uint64_t short_prompts = 0;
  token_count short_tokens = 0;
  std::uint64_t longer_prompts = 0;
  token_count longer_tokens = 0;
  std::uint64_t promised_prompts = 0;
  /// From arrival until the prompt was computed, in simulated nanoseconds.
  std::vector<nanoseconds_t> first_token;
};

/// A model of a serving engine over a real runtime in simulated time: admits
/// prompts in their order, loads what the host pool has, computes the rest
/// under a token budget, and keeps the blocks until the output is over. It has
/// no prefix cache on the device: every hit is one of the host pool. Output is
/// neither computed step by step nor stored.
///
/// Ends the process with a sentence if the runtime fails.
class replica {
public:
  /// @param teller may be null
  replica(const replica_shape& shape, std::shared_ptr<publisher> teller);

  void take(prompt what);

  /// One step of simulated time from `now` on, if there is anything to do.
  void step(nanoseconds_t now);

  /// What changed in the pool is known to everyone in this process who asks
  /// its publisher.
  void settle();

  [[nodiscard]] bool idle() const noexcept {
    return waiting_.empty() && running_.empty() && !drains_;
  }

  /// Tokens that wait or are being computed.
  [[nodiscard]] token_count load() const noexcept {
    return load_;
  }

  [[nodiscard]] const replica_tally& tally() const noexcept {
    return tally_;
  }

private:
  struct request {
    prompt what;
    std::vector<block_id> blocks;
    token_count computed = 0;
    bool loading = false;
    bool fresh = true;
    /// When its output is over; zero while its prompt is computed.
    nanoseconds_t end = 0;
  };

  void end_requests(nanoseconds_t now);
  void admit();
  [[nodiscard]] bool admit_first();
  [[nodiscard]] std::vector<step_row> plan();
  void hear();

  replica_shape shape_;
  std::vector<std::byte> memory_;
  runtime runtime_;
  blocking_runtime engine_;
  blocking_rank rank_;
  std::vector<block_id> free_;
  std::deque<prompt> waiting_;
  /// In order of admission.
  std::map<request_id, request> running_;
  std::vector<finish_call> finished_;
  step_id steps_ = 0;
  token_count load_ = 0;
  /// Jobs may be in flight.
  bool drains_ = false;
  replica_tally tally_;
};

} // namespace kvtide::route
