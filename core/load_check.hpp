// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include "core/order_log.hpp"

#include <tsl/robin_map.h>

namespace kvtide::core {

/// Checks that the engine hands out no block that a load may still write (S7,
/// LDL-01).
class load_check {
public:
  explicit load_check(order_log& log) : log_(log) {
    // nop
  }

  void started(const job& load);

  /// No copy of this load writes any more.
  void ended(const job& load);

  /// The engine allocated a block.
  void allocated(block_id block) {
    if (!writers_.empty())
      look_up(block);
  }

private:
  void look_up(block_id block);

  // Off the path that every block takes.
  [[gnu::cold]] void complain(block_id block, job_id load);

  order_log& log_;
  tsl::robin_map<block_id, job_id> writers_;
};

} // namespace kvtide::core
