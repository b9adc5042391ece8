// SPDX-License-Identifier: Apache-2.0

/// @file
/// A job: one store or load of some chunks of one request.

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include <cstdint>
#include <vector>

namespace kvtide {

enum class job_kind : std::uint8_t {
  /// GPU to host.
  store,
  /// Host to GPU.
  load,
};

/// One chunk of a job. Always whole rows, never parallel lists.
struct job_row {
  chunk_key key;
  /// Where the chunk lies in each rank's host pool.
  slot_id slot = 0;
  /// Index of the chunk among the request's chunks of this group.
  std::uint32_t chunk = 0;
  /// `blocks_per_chunk` ids; `no_block` means that this part of the chunk is
  /// not copied.
  std::vector<block_id> blocks;
};

struct job {
  job_id id = 0;
  job_kind kind = job_kind::store;
  request_id request = 0;
  /// Groups in configured order, chunks ascending inside a group.
  std::vector<job_row> rows;
  /// Per group: logical index, in the request's block table, of the first
  /// block that is copied.
  std::vector<std::uint32_t> first_block;
};

/// How a job ended on one rank.
enum class job_status : std::uint8_t {
  /// All bytes were copied.
  done,
  /// The copy ended without being complete; no copy is running any more.
  failed,
  /// The copy missed its deadline and may still be running.
  late,
  /// A copy that had been reported `late` has ended since.
  drained,
};

} // namespace kvtide
