// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvtide::explore {

/// What can happen next, in the order in which a run without a will of its own
/// prefers it: all messages are handled before a copy ends, and so on.
enum class choice_kind : std::uint8_t {
  /// An actor handles its next message.
  actor,
  /// A copy makes its second half and ends.
  copy_end,
  /// A copy makes its first half.
  copy_start,
  /// A rank's compute of a step ends.
  compute_end,
  /// A rank's compute of a step starts.
  compute_start,
  /// The engine takes the results of a step.
  outputs,
  /// The engine goes on with its turn.
  turn,
  /// A report arrives that was held back.
  late_report,
  /// The idle delay passes.
  idle_time,
  /// The job deadline passes.
  deadline,
  /// A copy stops half way, or will.
  copy_failure,
  rank_death,
  rank_return,
  /// One of several things that the engine may do; zero is the plain one.
  whim,
  /// A stream of a CUDA device does something else than to copy or compute:
  /// preferred to all but messages.
  device_work,
  /// Nothing arrives any more on the way to a rank, nor from it.
  link_cut,
  /// The scheduler, or the worker, notices it.
  link_noticed,
  /// The rank joins again.
  link_return,
};

inline constexpr std::size_t choice_kinds = 18;

/// Everything that is not on a rank.
inline constexpr std::uint32_t center = 0xffff'ffff;

struct choice {
  choice_kind kind = choice_kind::actor;
  /// The rank whose state alone it changes, or `center`.
  std::uint32_t rank = center;
  /// Which actor, job, step or stream, or the number of the whim.
  std::uint64_t subject = 0;
  /// The first bad row of a copy that fails, or which of several such choices.
  std::uint32_t row = 0;

  friend bool operator==(const choice&, const choice&) = default;
};

/// What was picked at each decision of a run: an index into what was open
/// there. A list that is too short goes on with zeros.
using schedule = std::vector<std::uint32_t>;

/// "3:1 17:2", the picks that are not zero.
[[nodiscard]] std::string to_text(const schedule& picks);

/// @returns false if `text` is not such a list.
[[nodiscard]] bool from_text(const std::string& text, schedule& picks);

} // namespace kvtide::explore
