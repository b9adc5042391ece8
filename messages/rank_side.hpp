// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the process that owns a GPU hears from its worker.

#pragma once

#include "messages/fwd.hpp"

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

namespace kvtide {

using rank_side_actor
  = caf::typed_actor<caf::reacts_to<kv_registered>,
                     caf::reacts_to<kv_unregistered>,
                     caf::reacts_to<step_ready>, caf::reacts_to<rank_failed>,
                     caf::reacts_to<rank_stats>>;

} // namespace kvtide
