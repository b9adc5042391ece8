// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the engine and the process of a rank say to each other over a
/// `frame_stream`. The engine asks, each question is answered once and in
/// order:
///
///     hello     -> hello, or error
///     register  -> registered, or error
///     begin     -> ready, or error
///     compute   -> computed
///     end       -> (no answer)
///     settle    -> settled
///     stats     -> stats
///     unregister-> unregistered
///
/// An error ends the connection. Whoever reads a message that is none says so
/// by `stream_error`; nothing of it was done then.

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/ids.hpp"

#include "examples/replay/geometry.hpp"
#include "examples/replay/kv_content.hpp"
#include "examples/replay/kv_span.hpp"
#include "examples/replay/lane.hpp"
#include "examples/replay/options.hpp"
#include "examples/replay/runtime_time.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace kvtide::replay {

/// Counts up with every change of these messages.
inline constexpr std::uint32_t lane_protocol = 1;

/// The word of a message.
[[nodiscard]] std::string word_of(const nlohmann::json& message);

/// What both sides have to have in common, as the engine says it.
[[nodiscard]] nlohmann::json hello_of(const replay_options& opts, rank_id rank);

/// @returns what keeps the two from working together, a sentence that names the
///          option; empty if nothing does. Takes any message.
[[nodiscard]] std::string fault_of(const nlohmann::json& ours,
                                   const nlohmann::json& theirs);

/// The rank's answer.
struct lane_greeting {
  /// A random number per life of the process.
  std::uint64_t life = 0;
};

[[nodiscard]] nlohmann::json to_message(const lane_greeting& what);
[[nodiscard]] lane_greeting greeting_of(const nlohmann::json& message);

[[nodiscard]] nlohmann::json to_message(const kv_registered& what);
[[nodiscard]] kv_registered registered_of(const nlohmann::json& message);

[[nodiscard]] nlohmann::json begin_message(step_id step,
                                           const std::string& plan);
[[nodiscard]] step_id step_of(const nlohmann::json& message);
[[nodiscard]] std::string plan_of(const nlohmann::json& message);

[[nodiscard]] nlohmann::json to_message(step_id step, const readiness& what);
[[nodiscard]] readiness readiness_of(const nlohmann::json& message);

[[nodiscard]] nlohmann::json to_message(const kv_work& what);
/// Also checks that all of it lies in memory of this shape.
[[nodiscard]] kv_work work_of(const nlohmann::json& message,
                              const geometry& shape);

[[nodiscard]] nlohmann::json to_message(const check_tally& what);
[[nodiscard]] check_tally tally_of(const nlohmann::json& message);

[[nodiscard]] nlohmann::json end_message(step_id step, nanoseconds_t end);
[[nodiscard]] nanoseconds_t end_of(const nlohmann::json& message);

[[nodiscard]] nlohmann::json to_message(const copy_work& what);
[[nodiscard]] copy_work copies_of(const nlohmann::json& message);

/// A message that is a word alone.
[[nodiscard]] nlohmann::json word_message(const char* word);

[[nodiscard]] nlohmann::json error_message(const std::string& text);
/// The text of an error, of any message.
[[nodiscard]] std::string error_of(const nlohmann::json& message);

} // namespace kvtide::replay
