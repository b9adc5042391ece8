// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include "core/key_list.hpp"
#include "core/layout.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kvtide::core {

/// Which chunks a load reads so that `total` tokens are there (C6). Slots are
/// not known yet.
/// @param keys one per group
/// @param blocks one table per group
/// @param hashed a mark for each block: it has its content already
[[nodiscard]] std::vector<job_row>
plan_load(const layout& shape, std::span<const key_view> keys,
          token_count total, std::span<const std::vector<block_id>> blocks,
          std::span<const std::vector<std::uint8_t>> hashed);

} // namespace kvtide::core
