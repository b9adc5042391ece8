// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "core/short_list.hpp"

#include <cstddef>
#include <vector>

namespace kvtide::core {

/// What happened to a request's block tables since it was last told something.
/// The scheduler gathers it, so that a request that does nothing costs no
/// message; it travels with the next one. To be applied in the order of the
/// fields.
struct table_update {
  struct cleared_block {
    group_id group = 0;
    /// Index in the block table.
    std::size_t position = 0;
  };

  bool empty_tables = false;
  /// Per group; an empty outer list means none.
  per_group<std::vector<block_id>> appended;
  /// Places whose block was handed to somebody else.
  std::vector<cleared_block> cleared;
};

} // namespace kvtide::core
