// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <tsl/robin_map.h>

#include <cstddef>
#include <vector>

namespace kvtide::core {

/// Where the blocks of sliding groups stand in block tables. Blocks that left
/// a window are handed to others while their ids still stand in the old table;
/// the index finds those places without a look at every request (C7).
class sliding_index {
public:
  struct place {
    request_id request = 0;
    group_id group = 0;
    /// Index in the block table.
    std::size_t position = 0;
  };

  /// Ignores `no_block`.
  void add(block_id block, const place& where);

  /// A place that is not there is ignored.
  void remove(block_id block, request_id request, group_id group,
              std::size_t position);

  /// @returns the places of `block`, or null
  [[nodiscard]] const std::vector<place>* places(block_id block) const;

  /// Number of places.
  [[nodiscard]] std::size_t size() const noexcept {
    return size_;
  }

private:
  tsl::robin_map<block_id, std::vector<place>> places_;
  std::size_t size_ = 0;
};

} // namespace kvtide::core
