// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

namespace kvtide::msg {

/// Counts the items that the scheduler takes from its queue. A question to a
/// request or to the cache manager carries it and the answer brings it back, so
/// that one of an earlier item is noticed on arrival (S1).
using turn_id = std::uint64_t;

} // namespace kvtide::msg
