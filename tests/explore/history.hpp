// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/answers.hpp"

#include "tests/explore/choice.hpp"
#include "tests/explore/rank_part.hpp"

#include <caf/actor_clock.hpp>
#include <caf/message.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kvtide::explore {

/// One thing that the scheduler was told from outside, at its turn.
struct scheduler_input {
  caf::actor_clock::time_point when;
  caf::message content;
  /// Whose worker says it; none if it is the engine.
  std::optional<rank_life> from;
  /// Whose worker joins with it.
  std::optional<rank_life> joins;
  /// Whose worker has died.
  std::optional<rank_life> worker_died;
  /// Whose device has died.
  std::optional<rank_life> device_died;
};

/// What happened in a world so far, for whoever looks at it afterwards.
struct history {
  /// What was picked where there was more than one choice.
  schedule picks;
  /// A number for the order of all events.
  std::uint64_t fingerprint = 0;
  /// All events, in order.
  std::vector<choice> performed;
  /// How many events came before each pick.
  std::vector<std::size_t> decided_at;
  /// One line per event, if traced.
  std::vector<std::string> trace;
  /// What the runtime counted until the run was over.
  std::optional<stats> counted;

  /// By the ticket of a lookup: questions right before it, with nothing in
  /// between that could change an answer.
  std::map<ticket_id, std::vector<ticket_id>> explained;

  // For the check of S1.

  std::vector<scheduler_input> inputs;
  /// All that the engine heard, in order.
  std::vector<std::string> heard;
  /// Time passed while calls waited in the scheduler: when they took effect is
  /// not known, and what the idle rule (S13) does depends on it.
  bool busy_in_time = false;
};

} // namespace kvtide::explore
