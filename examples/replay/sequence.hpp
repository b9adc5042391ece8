// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/calls.hpp"
#include "kvtide/ids.hpp"

#include "examples/replay/token_text.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kvtide::replay {

/// Where a request stands.
enum class phase : std::uint8_t {
  /// Never looked up.
  queued,
  /// The last lookup said: ask again.
  deferred,
  /// A load fills its blocks.
  loading,
  prefill,
  decode,
  /// Lost its blocks and waits.
  preempted,
  ended,
};

/// Number of phases in which a request can be aborted.
inline constexpr std::size_t live_phases = 6;

[[nodiscard]] constexpr const char* to_word(phase where) noexcept {
  constexpr const char* words[] = {"queued", "deferred",  "loading", "prefill",
                                   "decode", "preempted", "ended"};
  return words[static_cast<std::size_t>(where)];
}

/// One request as the engine model sees it.
struct sequence {
  explicit sequence(token_text what) : text(std::move(what)) {
    // nop
  }

  request_id id = 0;
  token_text text;
  token_count prompt = 0;
  /// Tokens that it will have sampled when it ends.
  token_count output = 0;
  /// Ends by a stop token, which the engine learns only from the output; else
  /// by the length limit, which it knows before.
  bool stops = false;
  /// Asks for the text of an earlier request again; not part of the hit rate.
  bool revisit = false;
  /// Its blocks are to be reused at once when it ends or is preempted.
  bool quick_reuse = false;

  // -- progress
  // ----------------------------------------------------------------

  bool waiting = true;
  bool loading = false;
  bool deferred = false;
  bool preempted = false;
  bool ended = false;
  /// Tokens whose ids are known.
  token_count known = 0;
  /// Tokens whose KV is computed, steps in flight included.
  token_count computed = 0;
  /// Samples that steps in flight will bring.
  token_count sampling = 0;
  /// Raised by each preemption, so that steps in flight can tell.
  std::uint32_t life = 0;
  /// Went through admission at least once.
  bool admitted = false;
  /// A load failed: compute everything from now on.
  bool load_refused = false;
  /// It loads, but a rank lost what lies before.
  bool wasted = false;

  // -- blocks
  // ------------------------------------------------------------------

  /// Block table per group.
  std::vector<std::vector<block_id>> tables;
  /// Leading blocks that others can find by their content.
  std::size_t published = 0;

  // -- what the runtime was told
  // -------------------------------------------------

  std::size_t hashes_sent = 0;
  /// Was in a step since `add`.
  bool stepped = false;
  /// Block table entries per group that the runtime has; none before the first
  /// step and after a preemption.
  std::vector<std::size_t> blocks_sent;

  // -- admission
  // -----------------------------------------------------------------

  /// Tokens that the device's prefix cache had.
  token_count local = 0;
  /// Tokens that were there when compute began, loaded ones included.
  token_count ready = 0;

  [[nodiscard]] phase where() const noexcept {
    if (ended)
      return phase::ended;
    if (loading)
      return phase::loading;
    if (waiting)
      return deferred  ? phase::deferred
           : preempted ? phase::preempted
                       : phase::queued;
    return known == prompt ? phase::prefill : phase::decode;
  }

  /// Tokens that the next step could compute.
  [[nodiscard]] token_count due() const noexcept {
    const auto reachable = known + sampling;
    // The last token is sampled, but nobody computes its KV.
    const auto last = prompt + output - 1;
    return (stops || reachable < last ? reachable : last) - computed;
  }
};

using sequence_ptr = std::shared_ptr<sequence>;

} // namespace kvtide::replay
