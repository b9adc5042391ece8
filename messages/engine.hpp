// SPDX-License-Identifier: Apache-2.0

/// @file
/// What whoever plays the engine hears. The structs are the public answers and
/// notices of kvtide/answers.hpp.

#pragma once

#include "messages/fwd.hpp"

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <map>
#include <vector>

namespace kvtide::msg {

/// Answers `get_snapshot`: the scheduler's and the pool's inner state, for
/// tests and diagnosis. All lists ascend.
struct snapshot_answer {
  struct job_state {
    job_id job = 0;
    std::uint32_t missing_reports = 0;
  };

  ticket_id ticket = 0;
  std::vector<request_id> tracked;
  /// Without jobs from before the last reset.
  std::vector<job_state> jobs;
  /// Per request and group: first chunk not yet considered stored.
  std::map<request_id, std::vector<std::size_t>> next;
  std::vector<block_id> watched_blocks;
  std::uint64_t free_slots = 0;
  std::uint64_t idle_chunks = 0;
  std::uint64_t writing_chunks = 0;
};

} // namespace kvtide::msg

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::snapshot_answer)

namespace kvtide {

/// The engine's ear. Answers come in the order of their calls.
using engine_actor = caf::typed_actor<
  caf::reacts_to<lookup_answer>, caf::reacts_to<step_plan>,
  caf::reacts_to<finish_answer>, caf::reacts_to<stats_answer>,
  caf::reacts_to<events_answer>, caf::reacts_to<msg::snapshot_answer>,
  caf::reacts_to<call_done>, caf::reacts_to<call_failed>,
  caf::reacts_to<load_done>, caf::reacts_to<load_failed>,
  caf::reacts_to<blocks_released>, caf::reacts_to<rank_lost>,
  caf::reacts_to<rank_back>, caf::reacts_to<overload>,
  caf::reacts_to<cache_lost>, caf::reacts_to<explain_answer>>;

} // namespace kvtide
