// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/options.hpp"

#include "tests/conformance/scenario.hpp"
#include "tests/conformance/traffic.hpp"

#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace kvtide::conformance {

struct replay_options {
  /// How plans reach the ranks in files of level "connector".
  plan_delivery delivery = plan_delivery::direct;

  /// A handler that does nothing, so that a mismatch is to be expected.
  std::optional<handler_name> stub;

  /// Gets a line per message; may be null.
  std::ostream* trace = nullptr;
};

struct replay_result {
  /// "path:line: what: got ..., want ..."; at most `recorder::limit`.
  std::vector<std::string> mismatches;

  /// What the actors handled.
  traffic handled;
};

/// Replays one file in an actor system of its own.
[[nodiscard]] replay_result replay(const scenario& file,
                                   const replay_options& opts);

} // namespace kvtide::conformance
