// SPDX-License-Identifier: Apache-2.0

/// @file
/// Time in a replay. Only a report for a store that no step has begun yet lets
/// any pass.

#pragma once

#include <chrono>

namespace kvtide::conformance {

/// After this time a worker hands deferred stores over (S13).
inline constexpr auto idle_delay = std::chrono::milliseconds{5};

/// Longer than all replays take.
inline constexpr auto never_idle = std::chrono::hours{24 * 365};
inline constexpr auto job_deadline = std::chrono::hours{24 * 365};

} // namespace kvtide::conformance
