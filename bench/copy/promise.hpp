// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/error.hpp"

#include "bench/copy/results.hpp"

namespace kvtide::bench {

/// Checks that the host engine keeps what it promises: with fragments of 64 KiB
/// in a batch of 64 MiB and one job, the median is at least 0.9 of `memcpy`
/// per fragment.
/// @returns a sentence that says what is below, or that nothing of the kind was
///          measured
[[nodiscard]] error check_host_promise(const results& what);

} // namespace kvtide::bench
