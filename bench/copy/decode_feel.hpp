// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "bench/copy/options.hpp"
#include "bench/copy/results.hpp"

#include <vector>

namespace kvtide::bench {

/// Measures a decode-like loop beside nothing, beside one unsliced batch after
/// the other, and beside an engine's copies at nine tenths of what one large
/// copy makes of the link; in turns.
/// @returns one row each, the first one beside nothing; none if interrupted
///          before the first round was over
[[nodiscard]] result<std::vector<decode_row>>
measure_decode(const copy_options& options);

} // namespace kvtide::bench
