// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <algorithm>

namespace kvtide::core {

/// Checks that tickets ascend on one path (S1).
class ticket_order {
public:
  /// @returns false if `ticket` is not above all that came before
  [[nodiscard]] bool follows(ticket_id ticket) noexcept {
    const auto ascends = ticket > last_;
    last_ = std::max(last_, ticket);
    return ascends;
  }

  /// The highest so far.
  [[nodiscard]] ticket_id last() const noexcept {
    return last_;
  }

private:
  ticket_id last_ = 0;
};

} // namespace kvtide::core
