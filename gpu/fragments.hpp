// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the host engines do with a list of fragments.

#pragma once

#include "gpu/copy_engine.hpp"

#include <cstdint>
#include <vector>

namespace kvtide::gpu {

[[nodiscard]] std::uint64_t
total_bytes(const std::vector<fragment>& fragments) noexcept;

/// Bytes of the leading fragments whose row is below `row`.
[[nodiscard]] std::uint64_t
bytes_before_row(const std::vector<fragment>& fragments,
                 std::uint32_t row) noexcept;

/// Copies the bytes from `first` up to `last`, counted through all fragments
/// as if they were one; a fragment may be cut. No fragment's source may
/// overlap its destination.
void copy_range(const std::vector<fragment>& fragments, std::uint64_t first,
                std::uint64_t last) noexcept;

/// As `copy_range`.
/// @returns the wall time that it took.
nanoseconds_t timed_copy(const std::vector<fragment>& fragments,
                         std::uint64_t first, std::uint64_t last) noexcept;

/// How long a copy takes: latency + bytes / bandwidth, rounded up, at most
/// `never`.
/// @param bytes_per_second zero means that only the latency counts.
[[nodiscard]] nanoseconds_t copy_time(std::uint64_t bytes,
                                      nanoseconds_t latency,
                                      std::uint64_t bytes_per_second) noexcept;

} // namespace kvtide::gpu
