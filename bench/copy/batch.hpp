// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "gpu/copy_engine.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvtide::bench {

/// Memory on both sides of the copies of one direction.
struct both_sides {
  /// Twice as much as the largest batch has.
  std::byte* blocks = nullptr;
  /// As much as the largest batch has.
  std::byte* slots = nullptr;
};

/// Bytes that move one way.
struct batch {
  job_kind kind = job_kind::store;
  both_sides where;
  std::uint64_t bytes = 0;
  /// Between blocks that lie scattered and slots that follow one another.
  std::vector<gpu::fragment> fragments;
  std::uint64_t jobs = 1;
};

/// @param jobs at most `count` are made
/// @pre `fragment_bytes * count` fits into `where`
[[nodiscard]] batch make_batch(job_kind kind, both_sides where,
                               std::uint64_t fragment_bytes,
                               std::uint64_t count, std::uint64_t jobs);

/// Appends the jobs of a batch, without ids.
void append_jobs(const batch& what, std::vector<gpu::copy_job>& out);

} // namespace kvtide::bench
