// SPDX-License-Identifier: Apache-2.0

/// @file
/// What engines do with a list of fragments.

#pragma once

#include "gpu/copy_engine.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
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

/// Joins neighbours of one tensor that are adjacent on both sides, also of
/// different rows: the joined one keeps the row of its first byte.
/// @param in_one_piece says whether an address on the host's side and a number
///                     of bytes lie in one registration (G5)
void merge_adjacent(
  std::vector<fragment>& fragments, job_kind kind,
  const std::function<bool(const void*, std::uint64_t)>& in_one_piece);

/// Cuts a job's fragments into slices (G3).
class fragment_cursor {
public:
  fragment_cursor() = default;

  explicit fragment_cursor(std::vector<fragment> fragments)
    : fragments_(std::move(fragments)) {
    // nop
  }

  [[nodiscard]] bool done() const noexcept {
    return next_ == fragments_.size();
  }

  /// Appends the next `bytes` bytes to `out`, or what is left, or as much as
  /// fits into that many fragments.
  /// @pre `bytes > 0` and `fragments > 0`
  void take(std::uint64_t bytes, std::size_t fragments,
            std::vector<fragment>& out);

private:
  std::vector<fragment> fragments_;
  std::size_t next_ = 0;
  /// Bytes of the next fragment that were taken.
  std::uint64_t taken_ = 0;
};

/// How long a copy takes: latency + bytes / bandwidth, rounded up, at most
/// `never`.
/// @param bytes_per_second zero means that only the latency counts.
[[nodiscard]] nanoseconds_t copy_time(std::uint64_t bytes,
                                      nanoseconds_t latency,
                                      std::uint64_t bytes_per_second) noexcept;

} // namespace kvtide::gpu
