// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "bench/load.hpp"
#include "core/block_tables.hpp"
#include "core/cache.hpp"
#include "core/fresh_blocks.hpp"
#include "core/job_table.hpp"
#include "core/layout.hpp"
#include "core/request_keys.hpp"
#include "core/reuse_watch.hpp"
#include "core/rules.hpp"
#include "core/short_list.hpp"
#include "core/store_intent.hpp"

#include <tsl/robin_map.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace kvtide::bench {

/// The floor: what the actors decide in a step, by direct calls into core/ on
/// one thread, without messages, checks of what the engine says, or order
/// checker.
class direct_calls {
public:
  explicit direct_calls(const load_config& config);

  void add(const add_request& call);

  void extend(const extend_keys& call);

  /// Decides, and ends the jobs of the step before, as the device of
  /// `actors_under_test` does.
  void step(const step_call& call);

private:
  struct request {
    core::request_keys keys;
    core::block_tables open_blocks;
    core::store_wish wish;
    core::per_group<std::size_t> next;
    token_count boundary = 0;
  };

  void take_row(const step_row& row);
  void store(const std::vector<request_id>& crossing);
  void end_jobs();

  std::shared_ptr<const core::layout> shape_;
  const core::rules* rule_;
  std::uint32_t ranks_;
  core::cache cache_;
  core::job_table jobs_;
  core::reuse_watch watch_;
  tsl::robin_map<request_id, std::unique_ptr<request>> requests_;
  core::fresh_blocks fresh_;
  /// Of the last step.
  std::vector<job_id> running_;
  /// Of the jobs at hand; kept for their room.
  std::vector<chunk_key> keys_;
};

} // namespace kvtide::bench
