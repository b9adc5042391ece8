// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the actor behind a router understands.

#pragma once

#include "messages/directory.hpp"
#include "messages/fwd.hpp"
#include "messages/join.hpp"
#include "messages/timer.hpp"

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <functional>
#include <vector>

namespace kvtide::msg {

/// From the process that routes: ask for this prompt.
struct route {
  ticket_id ticket = 0;
  /// Of the prompt.
  token_count tokens = 0;
  std::vector<key_run> runs;
  /// Takes the answer, on the thread of the actor.
  std::function<void(replica_choice)> answer;
};

} // namespace kvtide::msg

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::route)

namespace kvtide {

/// Asks a directory, and answers in time whatever becomes of it.
using router_actor
  = caf::typed_actor<caf::reacts_to<msg::route>, caf::reacts_to<msg::knock>,
                     caf::reacts_to<msg::replicas_found>,
                     caf::reacts_to<msg::timer>>;

} // namespace kvtide
