// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/replay/options.hpp"

#include <optional>
#include <string>
#include <variant>

namespace kvtide::replay {

/// What became of `--device`.
struct chosen_device {
  replay_options opts;
  /// Says what was chosen where that was not said on the command line; one
  /// line without a newline, or empty.
  std::string notice;
};

/// Settles on a device that is there: `device_choice::automatic` becomes one of
/// the others, and with a GPU time is real and copies are as slow as they are.
/// @returns why not, and exit status 2, if a GPU was asked for that is not
///          there
[[nodiscard]] std::variant<chosen_device, early_exit>
choose_device(replay_options opts);

} // namespace kvtide::replay
