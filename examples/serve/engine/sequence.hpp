// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"
#include "kvtide/prefix_hasher.hpp"

#include "examples/serve/engine/completion.hpp"
#include "examples/serve/model/model_shape.hpp"
#include "examples/serve/model/paged_kv.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace serve {

/// Where a request stands.
enum class phase : std::uint8_t {
  /// Has no blocks. It is new, or was preempted, or was told to ask again.
  waiting,
  /// A lookup is under way. The blocks of its local prefix are retained from
  /// here on.
  asking,
  /// The lookup was answered; the next step may admit it.
  answered,
  /// A load fills its blocks.
  loading,
  /// Takes part in steps.
  running,
  ended,
};

/// The last token that compute has sampled for a request: a step may be planned
/// and launched before anybody else knows it. Only the compute thread looks.
struct sampled_token {
  token_id value = 0;
};

/// One request as the engine sees it. Only the engine's thread touches it.
struct sequence {
  sequence(completion_id name, completion_request what,
           completion_callbacks whom, std::int32_t tokens_per_block)
    : id(name), callbacks(std::move(whom)),
      hasher(tokens_per_block, std::move(what.cache_salt)) {
    tokens.reserve(what.prompt.size()
                   + static_cast<std::size_t>(what.max_tokens));
    for (const auto byte : what.prompt)
      tokens.push_back(static_cast<unsigned char>(byte));
    prompt = known();
    length = prompt + what.max_tokens;
  }

  /// Tokens whose ids are known, the prompt first.
  [[nodiscard]] kvtide::token_count known() const noexcept {
    return static_cast<kvtide::token_count>(tokens.size());
  }

  /// Tokens that the next step could compute. The last token of an answer is
  /// sampled, but nobody needs its KV.
  [[nodiscard]] kvtide::token_count due() const noexcept {
    const auto reachable = known() + sampling;
    return (reachable < length ? reachable : length - 1) - computed;
  }

  // -- what it is -------------------------------------------------------------

  completion_id id;
  completion_callbacks callbacks;
  std::vector<token_id> tokens;
  kvtide::token_count prompt = 0;
  /// Tokens that it will have when it ends.
  kvtide::token_count length = 0;

  // -- progress ---------------------------------------------------------------

  phase where = phase::waiting;
  /// Tokens whose KV is computed, steps in flight included.
  kvtide::token_count computed = 0;
  /// Tokens that steps in flight will bring.
  kvtide::token_count sampling = 0;
  std::uint32_t steps_in_flight = 0;
  /// Grows when blocks are lost, so that steps in flight can tell.
  std::uint32_t life = 0;
  std::shared_ptr<sampled_token> sampled = std::make_shared<sampled_token>();

  // -- blocks -----------------------------------------------------------------

  block_table table;
  /// Leading blocks, in each group, that others can find.
  std::size_t published = 0;

  // -- what the cache knows ---------------------------------------------------

  kvtide::prefix_hasher hasher;
  /// Tokens that went into the hasher.
  std::size_t hashed_tokens = 0;
  /// One per block of known tokens.
  std::vector<kvtide::prefix_hash> hashes;
  /// Was in a step since `add`.
  bool stepped = false;
  /// Blocks per group that were named in steps; empty before the first step and
  /// after a preemption.
  std::vector<std::size_t> blocks_sent;

  // -- admission --------------------------------------------------------------

  /// Counts against `engine_options::queue_limit`.
  bool in_queue = true;
  bool admitted_once = false;
  /// Tokens that the device had.
  kvtide::token_count local = 0;
  /// Tokens that the host has beyond, and what holds them there.
  kvtide::token_count external = 0;
  kvtide::promise_id promise = 0;
  /// Was told to ask again in a step behind this one.
  bool deferred = false;
  std::uint64_t asked_at = 0;
  /// A load failed and there was no room to go on: compute everything.
  bool no_load = false;
};

using sequence_ptr = std::shared_ptr<sequence>;

} // namespace serve
