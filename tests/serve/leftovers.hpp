// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/engine/engine_stats.hpp"

#include <string>
#include <vector>

namespace serve::test {

/// What an engine that has nothing to do still holds on to, and calls that were
/// wrong: a sentence each. Nothing, if all is well.
[[nodiscard]] std::vector<std::string> left_over(const engine_stats& last);

} // namespace serve::test
