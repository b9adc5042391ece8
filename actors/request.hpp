// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/block_tables.hpp"
#include "core/layout.hpp"
#include "core/rules.hpp"
#include "messages/request.hpp"
#include "messages/scheduler.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>

namespace kvtide {

/// What a request knows from the start.
struct request_config {
  request_id request = 0;
  std::shared_ptr<const core::layout> shape;
  /// A constant of core/rules.hpp.
  const core::rules* rule = nullptr;
  token_count prompt_tokens = 0;
};

/// State of a request: its block tables. Touched by one thread at a time, as
/// CAF runs one message of an actor after the other.
struct request_state {
  static inline const char* name = "request";

  // -- message handlers -------------------------------------------------------

  void plan_store(const msg::plan_store& x);
  void plan_load(const msg::plan_load& x);

  // -- members ----------------------------------------------------------------

  request_actor::pointer self = nullptr;
  request_config config;
  scheduler_request_port scheduler;
  core::block_tables tables{0};
};

/// Keeps what only this request needs, and says what it could store or load;
/// whether it does is the scheduler's decision (S10). Ends with `retire`.
request_actor::behavior_type
request(request_actor::stateful_pointer<request_state> self,
        request_config config, scheduler_request_port scheduler);

} // namespace kvtide
