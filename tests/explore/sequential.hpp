// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "tests/explore/findings.hpp"
#include "tests/explore/scenario.hpp"
#include "tests/explore/world.hpp"

namespace kvtide::explore {

/// Tells a new scheduler the same calls and outcomes, each only when the one
/// before it is over, and compares what the engine and the ranks hear (S1).
void check_sequential(const scenario& what, const world& seen, findings& found);

} // namespace kvtide::explore
