// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a test says to a `test_system`.

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kvtide::test {

using block_lists = std::vector<std::vector<block_id>>;

/// How a request differs from one with tokens of its own and no limits.
struct add_with {
  /// Whose leading tokens it shares, and how many of them.
  request_id like = 0;
  token_count shared = 0;
  bool no_read = false;
  bool no_store = false;
  bool prompt_only = false;
  token_count cap = no_cap;
  /// What its first chunk follows; empty for nothing.
  prefix_hash parent{};
};

/// One scheduled request. Blocks per group: all of them the first time and
/// after a preemption, else those that are new.
struct turn_row {
  request_id request = 0;
  token_count tokens = 0;
  block_lists blocks;
};

struct turn {
  std::vector<turn_row> run;
  std::vector<request_id> preempt;
};

/// How a copy ends.
struct ending {
  /// None: on all ranks, in ascending order.
  std::optional<rank_id> rank;
  bool fail = false;
  std::uint32_t first_failed_row = 0;
};

} // namespace kvtide::test
