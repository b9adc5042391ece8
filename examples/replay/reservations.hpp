// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <cstddef>
#include <unordered_map>
#include <vector>

namespace kvtide::replay {

/// Blocks that copies may still write although their request lets them go. A
/// load that failed while it ran names them, and the end of its request names
/// them again; `blocks_released` comes once.
class reservations {
public:
  /// @returns how many of them were not reserved yet
  std::size_t add(request_id request, const std::vector<block_id>& blocks);

  /// @returns those that were reserved for the request and are free now
  [[nodiscard]] std::vector<block_id>
  remove(request_id request, const std::vector<block_id>& blocks);

  [[nodiscard]] std::size_t size() const noexcept {
    return size_;
  }

private:
  std::unordered_map<request_id, std::vector<block_id>> all_;
  std::size_t size_ = 0;
};

} // namespace kvtide::replay
