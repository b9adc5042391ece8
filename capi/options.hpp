// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/kvtide.h"
#include "kvtide/options.hpp"

namespace kvtide::capi {

/// @throws refusal
[[nodiscard]] options take_options(const kvtide_options* from);

} // namespace kvtide::capi
