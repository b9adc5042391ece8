// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvtide::core {

/// What happened to a request since it was last told something. The scheduler
/// gathers it, so that a request that does nothing costs no message; it travels
/// with the next one. To be applied in the order of the fields.
struct request_update {
  struct cleared_block {
    group_id group = 0;
    /// Index in the block table.
    std::size_t position = 0;
  };

  std::vector<prefix_hash> hashes;
  /// Ids of the tokens that `hashes` cover; empty if the engine sent none.
  std::vector<std::int32_t> token_ids;
  bool empty_tables = false;
  /// Per group; an empty outer list means none.
  std::vector<std::vector<block_id>> appended;
  /// Places whose block was handed to somebody else.
  std::vector<cleared_block> cleared;
  /// What the first chunk follows; empty for nothing, or for no news.
  prefix_hash parent;
};

} // namespace kvtide::core
