// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/replay/options.hpp"

#include <string>
#include <variant>
#include <vector>

namespace kvtide::worker_program {

/// What the command line can say.
struct program_options {
  /// The model and the cache, as the engine's.
  replay::replay_options shared;
  std::vector<rank_id> ranks;
  /// Where the scheduler listens; empty: it dials.
  std::string scheduler;
  /// A folder for the sockets of all ranks, or the socket of the only one.
  std::string engine;
};

/// Ranks from a list such as "1,4-6". Ascending, each once.
/// @returns nothing if it is none
[[nodiscard]] std::vector<rank_id> parse_ranks(const std::string& text);

/// The socket on which a rank's engine speaks.
[[nodiscard]] std::string socket_of(const program_options& opts, rank_id rank);

/// Parses and checks the command line. Prints nothing.
[[nodiscard]] std::variant<program_options, replay::early_exit>
parse_options(int argc, const char* const* argv);

} // namespace kvtide::worker_program
