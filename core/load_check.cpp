// SPDX-License-Identifier: Apache-2.0

#include "core/load_check.hpp"

#include <string>

namespace kvtide::core {

void load_check::started(const job& load) {
  for (const auto& row : load.rows)
    for (const auto block : row.blocks)
      if (block != no_block)
        writers_[block] = load.id;
}

void load_check::ended(const job& load) {
  for (const auto& row : load.rows)
    for (const auto block : row.blocks)
      if (const auto i = writers_.find(block);
          i != writers_.end() && i->second == load.id)
        writers_.erase(i);
}

void load_check::look_up(block_id block) {
  if (const auto i = writers_.find(block); i != writers_.end())
    complain(block, i->second);
}

void load_check::complain(block_id block, job_id load) {
  log_.breach(order_rule::s7, "a block was reused that a load may still write",
              "block " + std::to_string(block) + ", load "
                + std::to_string(load));
}

} // namespace kvtide::core
