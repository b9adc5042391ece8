// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/options.hpp"

#include "examples/replay/options.hpp"

namespace kvtide::replay {

/// What the library is told; the same in the processes of all ranks. The
/// network is still to be added where there is one.
[[nodiscard]] options make_runtime_options(const replay_options& opts);

} // namespace kvtide::replay
