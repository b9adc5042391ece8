// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <caf/abstract_actor.hpp>
#include <caf/actor_cast.hpp>

namespace kvtide {

/// False as soon as the actor takes no more messages and its state is gone:
/// what is sent to it then vanishes. Any thread.
template <class Handle>
[[nodiscard]] bool is_alive(const Handle& actor) {
  const auto* ptr = caf::actor_cast<caf::abstract_actor*>(actor);
  return ptr != nullptr && !ptr->getf(caf::abstract_actor::is_cleaned_up_flag);
}

} // namespace kvtide
